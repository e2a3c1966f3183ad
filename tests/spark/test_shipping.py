"""The format on workers that do not have the package: its code comes with the job."""

import io
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import InputPartition

from barnabas.spark import shipping
from barnabas.spark.planning import OffsetRange, ReadTask
from tests.spark._kit import Topics

DRIVER = Path(__file__).with_name("_ship_driver.py")


@pytest.mark.slow
def test_the_package_goes_whole_and_the_same_bytes_every_time() -> None:
    packed = shipping.package_zip()
    assert packed == shipping.package_zip()
    names = zipfile.ZipFile(io.BytesIO(packed)).namelist()
    assert {"barnabas/__init__.py", "barnabas/spark/reading.py", "pyspark_barnabas/__init__.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or name.endswith(".c")]


def test_tasks_and_messages_are_of_pysparks_own_classes() -> None:
    task = ReadTask([OffsetRange("t", 0, 1, 5)], "token")
    (plain,) = shipping._plain_tasks([task])
    assert b"barnabas" not in pickle.dumps(plain)
    back = shipping._task(plain)
    assert (back, back.token) == (task, "token")
    nothing = InputPartition(None)
    assert shipping._task(nothing) is nothing
    message = shipping._message({"rows": 3})
    assert shipping._inner_messages([message, None]) == [{"rows": 3}, None]


def test_an_object_comes_back_with_its_kind() -> None:
    pickler: Any = cloudpickle  # PySpark ships it without types
    pickler.register_pickle_by_value(shipping)
    try:
        sent = pickler.dumps(shipping.ShippedReader(b"code", [1, 2]))
    finally:
        pickler.unregister_pickle_by_value(shipping)
    back = pickle.loads(sent)
    assert (type(back).__name__, back.inner, back.code) == ("ShippedReader", [1, 2], b"code")


@pytest.mark.soak  # a session of its own, with workers that unpack everything
@pytest.mark.timeout(600)
def test_workers_without_the_package_read_and_write(topics: Topics, topic: str, tmp_path: Path) -> None:
    target = f"{topic}-copy"
    topics.create(topic, 2)
    topics.create(target, 2)
    topics.fill(topic, 40)
    done = subprocess.run(
        [sys.executable, str(DRIVER), topics.bootstrap, topic, target, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=580,
    )
    assert done.stdout.splitlines() == ["read 40", "unpacked 1"], done.stderr[-3000:]
    assert len(topics.values(target, isolation="read_committed")) == 43
