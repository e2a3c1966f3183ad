"""A disk that can lose what was not synced.

Changes of names (create, rename, remove) last at once and in order, as a journal gives them; bytes last
only when their file is synced.  `crash` builds the folder that a power failure could leave: of every
file the synced bytes, and behind them any part of what was written since.
"""

import os
import random
import shutil

from barnabas.base.buffers import SharedFile
from barnabas.log.files import Bytes, OsFiles

__all__ = ["LossyFiles"]


class LossyFiles(OsFiles):
    """OsFiles under `root`, which remembers what was synced."""

    __slots__ = ("_durable", "_root")

    def __init__(self, root: str) -> None:
        self._root = root
        self._durable: dict[str, bytes] = {}

    def sync(self, file: SharedFile) -> None:
        super().sync(file)
        self._durable[_name(file)] = _content(_name(file))

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        self._durable.pop(new, None)
        if os.path.isdir(new):
            inside = [path for path in self._durable if path.startswith(old + "/")]
            for path in inside:
                self._durable[new + path.removeprefix(old)] = self._durable.pop(path)
        elif old in self._durable:
            self._durable[new] = self._durable.pop(old)

    def remove(self, path: str) -> None:
        super().remove(path)
        self._durable.pop(path, None)

    def replace(self, path: str, content: Bytes, *, sync: bool = True) -> None:
        self._durable.pop(path + ".tmp", None)
        super().replace(path, content, sync=sync)

    def is_durable(self, path: str) -> bool:
        """Whether all that is in the file now would survive."""
        return self._durable.get(path) == _content(path)

    def crash(self, chance: random.Random) -> None:
        """Lose what a power failure may lose; everything on the disk counts as synced after."""
        survivors: dict[str, bytes] = {}
        for folder, _, names in os.walk(self._root):
            for name in names:
                path = f"{folder}/{name}"
                survivors[path] = _survives(self._durable.get(path, b""), _content(path), chance)
        shutil.rmtree(self._root)
        for path, content in survivors.items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
        self._durable = survivors


def _name(file: SharedFile) -> str:
    """The file's present name: it may have been renamed since it was opened."""
    return os.readlink(f"/proc/self/fd/{file.fileno()}")


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def _survives(synced: bytes, written: bytes, chance: random.Random) -> bytes:
    if not written.startswith(synced):  # cut or rewritten since: either may be found
        return chance.choice([synced, written])
    more = written[len(synced) :]
    kept = more[: chance.choice([0, len(more), chance.randint(0, len(more))])]
    if kept and chance.random() < 0.3:  # a block whose length was written and whose bytes were not
        hole = chance.randrange(len(kept))
        kept = kept[:hole] + bytes(len(kept) - hole)
    return synced + kept
