"""A file system on which the process ends at a chosen change."""

from collections.abc import Callable
from typing import TypeVar

from barnabas.spark.pipelines.landing_files import Files, Found

Answer = TypeVar("Answer")


class Crash(Exception):
    """The process ends here."""


class FragileFiles:
    """Another file system, until the nth change; that one happens or not."""

    def __init__(self, files: Files, last: int, *, done: bool) -> None:
        self._files = files
        self._left = last
        self._done = done

    def read(self, path: str) -> str | None:
        return self._files.read(path)

    def exists(self, path: str) -> bool:
        return self._files.exists(path)

    def names(self, folder: str) -> list[str]:
        return self._files.names(folder)

    def walk(self, folder: str) -> list[Found]:
        return self._files.walk(folder)

    def put(self, path: str, text: str) -> None:
        self._change(lambda: self._files.put(path, text))

    def put_new(self, path: str, text: str) -> bool:
        return self._change(lambda: self._files.put_new(path, text))

    def move(self, source: str, target: str) -> None:
        self._change(lambda: self._files.move(source, target))

    def remove(self, path: str) -> None:
        self._change(lambda: self._files.remove(path))

    def _change(self, make: Callable[[], Answer]) -> Answer:
        self._left -= 1
        if self._left < 0 and not self._done:
            raise Crash
        made = make()
        if self._left < 0:
            raise Crash
        return made
