"""What a run leaves for others to see: `status.json` in the folder of each pipeline, and Spark's own logs.

Only for checkpoints on a local disk; elsewhere `read_status` knows nothing.  No Spark here.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from barnabas.spark.pipelines.progress import Progress, record

__all__ = ["PipelineStatus", "StatusFile", "is_held", "last_jvm", "local_folder", "read_status"]

NAME: Final = "status.json"
_INTERVAL_S: Final = 1.0


def local_folder(place: str) -> Path | None:
    """The folder that a path or a file: address means; None when it is not on this machine."""
    from barnabas.spark.sessions import local_path

    return local_path(place)


def is_held(checkpoint: str) -> bool:
    """Whether a process runs with this folder now."""
    import fcntl

    from barnabas.spark.sessions import LOCK_NAME

    folder = local_folder(checkpoint)
    if folder is None or not (folder / LOCK_NAME).exists():
        return False
    with (folder / LOCK_NAME).open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


class StatusFile:
    """Writes the progress of one pipeline's parts, at most once a second unless the state changed."""

    def __init__(self, checkpoint: str) -> None:
        self._folder = local_folder(checkpoint)
        self._parts: dict[str, Progress] = {}
        self.jvm: str | None = None
        """Which JVM works for the pipeline; see driver.process_mark."""
        self._written_s = -_INTERVAL_S

    def take(self, progress: Progress) -> None:
        before = self._parts.get(progress.part)
        record(self._parts, progress)
        changed = before is None or (before.state, before.last_error) != (progress.state, progress.last_error)
        now_s = time.monotonic()
        if self._folder is None or not (changed or now_s - self._written_s >= _INTERVAL_S):
            return
        self._written_s = now_s
        document = {
            "pid": os.getpid(),
            "jvm": self.jvm,
            "at_ms": int(time.time() * 1000),
            "parts": [each.as_json() for each in self._parts.values()],
        }
        # A disk that is full must not end what runs: that tries again, and goes on when there is room.
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            fresh = self._folder / f".{NAME}.new"
            fresh.write_text(json.dumps(document))
            fresh.replace(self._folder / NAME)


def last_jvm(checkpoint: str) -> str | None:
    """Which JVM worked with a folder last, as far as its status tells."""
    folder = local_folder(checkpoint)
    found = _read(folder).get("jvm") if folder is not None else None
    return found if isinstance(found, str) else None


def _read(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / NAME).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """What the folder of a pipeline tells."""

    pipeline: str
    is_running: bool
    """Whether a process holds the checkpoint now."""
    at_ms: int | None
    parts: Sequence[Mapping[str, Any]]
    batches: Mapping[str, int]
    """Query -> the last batch that Spark has committed."""


def read_status(pipeline: str, checkpoint: str) -> PipelineStatus:
    """The status of a pipeline whose folder is `checkpoint`."""
    folder = local_folder(checkpoint)
    is_running = is_held(checkpoint)
    if folder is None or not folder.is_dir():
        return PipelineStatus(pipeline, is_running, None, [], {})
    found = _read(folder)
    batches = {}
    for commits in sorted(folder.glob("*/commits")):
        numbers = [int(file.name) for file in commits.iterdir() if file.name.isdigit()]
        if numbers:
            batches[commits.parent.name] = max(numbers)
    return PipelineStatus(pipeline, is_running, found.get("at_ms"), found.get("parts", []), batches)
