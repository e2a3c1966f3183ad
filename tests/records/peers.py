"""The record classes of other clients' libraries, under one naming: builders and readers by client."""

import warnings
from typing import Any, Final

from aiokafka.record import default_records as aiokafka_default
from aiokafka.record import legacy_records as aiokafka_legacy
from aiokafka.record import memory_records as aiokafka_memory

with warnings.catch_warnings():
    # kafka-python 3.0 loads its schemas, on import, through a function that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record import default_records as kafka_python_default
    from kafka.record import legacy_records as kafka_python_legacy
    from kafka.record import memory_records as kafka_python_memory

from barnabas.records.codecs import Codec

__all__ = ["BUILDERS", "CODECS", "LEGACY_BUILDERS", "NAMES", "READERS", "SET_READERS"]

NAMES: Final = ["aiokafka compiled", "aiokafka plain", "kafka-python"]
BUILDERS: Final[dict[str, Any]] = {
    "aiokafka compiled": aiokafka_default.DefaultRecordBatchBuilder,
    "aiokafka plain": aiokafka_default._DefaultRecordBatchBuilderPy,
    "kafka-python": kafka_python_default.DefaultRecordBatchBuilder,
}
READERS: Final[dict[str, Any]] = {
    "aiokafka compiled": aiokafka_default.DefaultRecordBatch,
    "aiokafka plain": aiokafka_default._DefaultRecordBatchPy,
    "kafka-python": kafka_python_default.DefaultRecordBatch,
}
LEGACY_BUILDERS: Final[dict[str, Any]] = {
    "aiokafka compiled": aiokafka_legacy.LegacyRecordBatchBuilder,
    "aiokafka plain": aiokafka_legacy._LegacyRecordBatchBuilderPy,
    "kafka-python": kafka_python_legacy.LegacyRecordBatchBuilder,
}
SET_READERS: Final[dict[str, Any]] = {
    "aiokafka compiled": aiokafka_memory.MemoryRecords,
    "kafka-python": kafka_python_memory.MemoryRecords,
}
# kafka-python's other codecs need packages of their own, which are not installed.
CODECS: Final = {
    "aiokafka compiled": list(Codec),
    "aiokafka plain": list(Codec),
    "kafka-python": [Codec.NONE, Codec.GZIP],
}
