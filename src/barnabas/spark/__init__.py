"""Topics in Spark: `spark.read/readStream/write/writeStream.format("barnabas")`, without a jar.

    from barnabas import spark as barnabas_spark

    spark = barnabas_spark.session("orders", checkpoint="/data/checkpoints/orders")
    spark.read.format("barnabas").option("kafka.bootstrap.servers", "localhost:9092") \
        .option("subscribe", "orders").load()

Any PySpark session finds the format by itself; `session` only makes one with good settings.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.spark.errors import DataLoss as DataLoss
    from barnabas.spark.errors import OptionError as OptionError
    from barnabas.spark.errors import SparkPartError as SparkPartError
    from barnabas.spark.errors import one_sentence as one_sentence
    from barnabas.spark.kafka_alias import as_kafka as as_kafka
    from barnabas.spark.sessions import register as register
    from barnabas.spark.sessions import session as session

__all__ = [
    "DataLoss",
    "OptionError",
    "SparkPartError",
    "as_kafka",
    "one_sentence",
    "register",
    "session",
]

_HOMES = {
    "DataLoss": "barnabas.spark.errors",
    "OptionError": "barnabas.spark.errors",
    "SparkPartError": "barnabas.spark.errors",
    "as_kafka": "barnabas.spark.kafka_alias",
    "one_sentence": "barnabas.spark.errors",
    "register": "barnabas.spark.sessions",
    "session": "barnabas.spark.sessions",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'barnabas.spark' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
