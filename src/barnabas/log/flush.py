"""Making what is in a log durable, in three steps, so that the step that blocks can go to a thread."""

from typing import Final

from barnabas.base.buffers import SharedFile
from barnabas.log.files import Files

__all__ = ["FlushJob"]


class FlushJob:
    """The files to sync so that the log is durable up to `end_offset`.

    It holds the files open, whatever happens to the log meanwhile, and touches nothing else.
    The log's own counts, for it to know what the job has settled: `generation` of truncations, `sealed`
    segments since the last flush, `files_made` in the folder.
    """

    __slots__ = ("_files", "_folder", "_to_sync", "end_offset", "files_made", "generation", "sealed")

    def __init__(
        self,
        files: Files,
        to_sync: list[SharedFile],
        folder: str | None,
        *,
        end_offset: int,
        generation: int = 0,
        sealed: int = 0,
        files_made: int = 0,
    ) -> None:
        self._files: Final = files
        self._to_sync: Final = to_sync
        self._folder: Final = folder
        self.end_offset: Final = end_offset
        self.generation: Final = generation
        self.sealed: Final = sealed
        self.files_made: Final = files_made

    def run(self) -> None:
        """Sync.  Raises DiskFault; the log then may not be believed to be on disk."""
        for file in self._to_sync:
            self._files.sync(file)
        if self._folder is not None:
            self._files.sync_folder(self._folder)
