"""The recorded conversations of real clients with real brokers, from tests/data/frames."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent.parent / "data" / "frames"
BROKERS = ("kafka-3.9.1", "kafka-4.3.1")


class Exchange(NamedTuple):
    """One request and its response, as payloads of frames; the response may be empty (acks=0)."""

    broker: str
    client: str
    api_key: int
    api_version: int
    request: bytes
    response: bytes


@cache
def exchanges(broker: str) -> list[Exchange]:
    """Everything recorded with one broker, in order."""
    with gzip.open(_FOLDER / f"{broker}.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        Exchange(
            row["broker"],
            row["client"],
            row["api"],
            row["version"],
            bytes.fromhex(row["request"]),
            bytes.fromhex(row["response"]),
        )
        for row in rows
    ]
