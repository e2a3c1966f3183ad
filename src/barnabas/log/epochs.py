"""The leader epochs of one partition: which epoch began at which offset (KIP-101, KIP-279).

E1  Epochs and start offsets rise strictly from entry to entry.
E2  The file `leader-epoch-checkpoint` never lacks an entry that batches in the log carry: a new epoch is
    written before its first batch.  It may hold more after a crash; opening cuts it to the log's ends.

A table of one partition has a handful of entries, so it is a list and searched as one.
One caller at a time.
"""

from typing import Final, NamedTuple

from barnabas.log.checkpoints import checkpoint_integer, format_checkpoint, parse_checkpoint
from barnabas.log.errors import CorruptCheckpoint, DiskFault
from barnabas.log.files import Files

__all__ = ["NO_EPOCH", "EpochEnd", "EpochEntry", "EpochTable"]

NO_EPOCH: Final = -1


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """The answer to OffsetForLeaderEpoch: the epoch that it is about, and the offset behind its last."""

    epoch: int
    end_offset: int


class EpochTable:
    """Epoch → first offset, kept in `path`."""

    __slots__ = ("_entries", "_files", "path")

    def __init__(self, files: Files, path: str, *, exists: bool = True) -> None:
        self.path = path
        self._files: Final = files
        self._entries: list[EpochEntry] = []
        if exists:
            self._load()

    def _load(self) -> None:
        for words in parse_checkpoint(self.path, self._files.load(self.path), 2):
            entry = EpochEntry(*(checkpoint_integer(self.path, word) for word in words))
            if self._entries and not _rises(self._entries[-1], entry):
                raise CorruptCheckpoint(f"{self.path}: {entry} follows {self._entries[-1]}")
            self._entries.append(entry)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    @property
    def latest_epoch(self) -> int:
        """The last epoch known, or -1."""
        return self._entries[-1].epoch if self._entries else NO_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`; durable on return when that is news.

        Entries that contradict it (not below in epoch or offset) go: they began and wrote nothing,
        or their batches were truncated.
        """
        before = list(self._entries)
        if self._note(epoch, start_offset):
            try:
                self.write()
            except DiskFault:
                self._entries = before  # E2: not noted, so that the next attempt writes it
                raise

    def _note(self, epoch: int, start_offset: int) -> bool:
        entries = self._entries
        if entries and entries[-1].epoch == epoch and entries[-1].start_offset <= start_offset:
            return False
        while entries and not _rises(entries[-1], EpochEntry(epoch, start_offset)):
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        return True

    def learn(self, epoch: int, start_offset: int) -> None:
        """Note an epoch that a batch read back from disk carries, without writing; call `write` after."""
        if epoch > self.latest_epoch:
            self._note(epoch, start_offset)

    def end_offset(self, epoch: int, log_end_offset: int) -> EpochEnd | None:
        """The largest known epoch not above `epoch` and where it ends; None when nothing can be said.

        For an epoch below the first known one the answer is that epoch itself and the first known
        start: its data is gone, and whoever asks must begin there.
        """
        if epoch == NO_EPOCH or not self._entries or epoch > self._entries[-1].epoch:
            return None
        if epoch == self._entries[-1].epoch:
            return EpochEnd(epoch, log_end_offset)
        floor = epoch
        for entry in self._entries:
            if entry.epoch > epoch:
                return EpochEnd(floor, entry.start_offset)
            floor = entry.epoch
        raise AssertionError("E1: an epoch above the asked one exists")

    def epoch_at(self, offset: int) -> int:
        """The epoch in which `offset` was written, or -1 when that is before all we know."""
        found = NO_EPOCH
        for entry in self._entries:
            if entry.start_offset > offset:
                break
            found = entry.epoch
        return found

    def truncate_from_end(self, end_offset: int) -> bool:
        """Forget the epochs that begin at `end_offset` or above; says whether any did."""
        kept = [entry for entry in self._entries if entry.start_offset < end_offset]
        return self._replace(kept)

    def truncate_from_start(self, start_offset: int) -> bool:
        """Forget the epochs that end before `start_offset`; the one in which it lies now begins there."""
        below = [entry for entry in self._entries if entry.start_offset <= start_offset]
        if not below:
            return False
        return self._replace([EpochEntry(below[-1].epoch, start_offset), *self._entries[len(below) :]])

    def clear(self) -> None:
        """Forget everything, durably."""
        if self._replace([]):
            self.write()

    def _replace(self, entries: list[EpochEntry]) -> bool:
        changed = entries != self._entries
        self._entries = entries
        return changed

    def write(self) -> None:
        """Bring the table to disk; durable on return."""
        self._files.replace(
            self.path, format_checkpoint(f"{e.epoch} {e.start_offset}" for e in self._entries)
        )


def _rises(before: EpochEntry, after: EpochEntry) -> bool:
    return before.epoch < after.epoch and before.start_offset < after.start_offset
