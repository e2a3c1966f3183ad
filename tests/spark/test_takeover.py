"""A checkpoint of Spark's own Kafka connector is taken over: the query goes on where that one stopped."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import _spark_connector
from tests.spark._kit import Topics

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_query_changes_from_kafka_to_barnabas(topics: Topics, topic: str, tmp_path: Path) -> None:
    if (reason := _spark_connector.why_missing()) is not None:
        pytest.skip(reason)

    def batches(connector: str) -> dict[str, int]:
        place = [topics.bootstrap, topic, str(tmp_path / "checkpoint"), connector]
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark._takeover_driver", *place],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=400,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
        return found

    topics.create(topic, 3)
    topics.fill(topic, 30)
    assert batches("kafka") == {"0": 30}
    topics.fill(topic, 7, first=30)
    assert batches("barnabas") == {"1": 7}
