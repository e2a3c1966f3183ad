"""Kill -9 at random moments: reopened, the log holds all that was flushed and a prefix of the rest."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.records.kernel import decode
from tests.log._make import open_log, read_batches
from tests.log._victim import CONFIG


def run_and_kill(folder: Path, seed: int, words: int) -> dict[str, int]:
    """What the process had said it did when it was killed, after that many words."""
    said: dict[str, int] = {}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.log._victim", str(folder), str(seed)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for count, line in enumerate(process.stdout):
            if count == words:
                process.kill()
            if line.endswith("\n"):
                word, number = line.split()
                said[word] = int(number)
    return said


def check(folder: Path, said: dict[str, int]) -> int:
    log = open_log(folder, CONFIG, log_start_offset=said.get("start", 0))
    assert log.recovery is not None
    assert log.log_end_offset >= said.get("flushed", 0)
    expected = None
    for each in read_batches(log, log.log_start_offset):
        for record in decode(each.payload, each.record_count, each.base_offset, each.base_timestamp):
            assert int(record.value or b"") == record.offset
            assert expected in (None, record.offset), "nothing is missing in the middle"
            expected = record.offset + 1
    for segment in log.segments:
        segment.offset_index.check(max(segment.size_bytes, 1))
        segment.time_index.check()
    if log.log_end_offset:
        assert log.latest_epoch == max(0, log.epoch_at(log.log_end_offset - 1))
    end = log.log_end_offset
    log.release()
    return end


@pytest.mark.slow
def test_a_few_kills(tmp_path: Path) -> None:
    chance = random.Random(7)
    end = 0
    for seed in range(6):
        said = run_and_kill(tmp_path / "topic-0", seed, chance.randint(0, 60))
        end = check(tmp_path / "topic-0", said)
    assert end > 0


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(20))
def test_hundreds_of_kills(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for kill in range(20):
        said = run_and_kill(tmp_path / "topic-0", seed * 100 + kill, chance.randint(0, 200))
        check(tmp_path / "topic-0", said)
