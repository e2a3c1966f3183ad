"""The one door to the file system; nothing else in this package imports os, mmap or pathlib.

F1  `append` is all or error: after a short or failed write the file has its old length again.
F2  `replace` is atomic: a reader, or a restart after a crash, finds the old or the new content whole.
F3  A file that was created or renamed is durable only after `sync_folder` of its folder.
F4  Every failed system call leaves as DiskFault (DiskFull when there is no room), naming the path.

F5  Files and mappings for reading are held by who uses them and by `remember`, which keeps the last few
    hundred: a broker with many thousand segments stays far below its limit of descriptors.

`Files` is the interface, so that tests can put faults and lost writes between the log and the disk.
Any thread may call anything on its own file.
"""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import shutil
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from barnabas.base.buffers import SharedFile
from barnabas.log.errors import FolderInUse, disk_fault

__all__ = ["Bytes", "FileInfo", "Files", "FolderLock", "MappedFile", "OsFiles"]

Bytes = bytes | bytearray | memoryview
MappedFile = mmap.mmap
_IOV_MAX = 1024  # what one writev takes on Linux
_RECENT_MAX = 512
_recent: OrderedDict[int, SharedFile | MappedFile] = OrderedDict()  # by id; per process, as descriptors are
_RWF_DONTCACHE = 0x80  # Linux 6.14: pages that this read brings in go again behind it
_CACHESTAT = 451  # Linux 6.5; the number of the system call, the same on every architecture but Alpha
_libc = ctypes.CDLL(None)


class FileInfo:
    """A name in a folder, what it is, and how many bytes a regular file has."""

    __slots__ = ("is_folder", "modified_ms", "name", "size_bytes")

    def __init__(self, name: str, is_folder: bool, size_bytes: int, modified_ms: int) -> None:
        self.name = name
        self.is_folder = is_folder
        self.size_bytes = size_bytes
        self.modified_ms = modified_ms

    def __repr__(self) -> str:
        return f"FileInfo({self.name!r}, is_folder={self.is_folder}, size_bytes={self.size_bytes})"


class FolderLock(Protocol):
    """Ownership of a folder, until `release`."""

    def release(self) -> None: ...


class Files(Protocol):
    """What a log needs of a file system.  Everything raises DiskFault."""

    def open(self, path: str, *, create: bool = False) -> SharedFile:
        """The file for reading and writing; `create` makes it when missing."""
        ...

    def open_to_read(self, path: str) -> SharedFile:
        """The file for reading only, for tools that look at other people's files."""
        ...

    def append(self, file: SharedFile, position: int, buffers: Sequence[Bytes]) -> None:
        """Write the buffers one after the other at `position`, where the file ends (F1)."""
        ...

    def overwrite(self, file: SharedFile, position: int, buffers: Sequence[Bytes]) -> None:
        """Like `append` inside a file that goes on behind; a failure leaves rubbish at `position`."""
        ...

    def read(self, file: SharedFile, position: int, length: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""
        ...

    def read_into(self, file: SharedFile, position: int, buffer: memoryview) -> int:
        """Fill `buffer`; returns how many bytes there were."""
        ...

    def read_cold_into(self, file: SharedFile, position: int, buffer: memoryview) -> int:
        """`read_into` that leaves nothing new in the page cache, where the kernel can do that."""
        ...

    def size(self, file: SharedFile) -> int: ...

    def truncate(self, file: SharedFile, size_bytes: int) -> None: ...

    def allocate(self, file: SharedFile, size_bytes: int) -> None:
        """Reserve disk blocks up to `size_bytes`; the file then has that length."""
        ...

    def map(self, file: SharedFile, length: int) -> MappedFile:
        """A read-only view of the first `length` bytes, which must be there and more than none."""
        ...

    def remember(self, resource: SharedFile | MappedFile) -> None:
        """Keep it open until many others were remembered after it; for who holds it by a weak reference."""
        ...

    def drop(self, resource: SharedFile | MappedFile) -> None:
        """Remember it no longer: it closes with the last user, and a removed file gives its space back."""
        ...

    def forget(self, file: SharedFile, position: int, length: int) -> None:
        """Tell the kernel that these cached bytes will not be read again soon; a hint."""
        ...

    def prefetch(self, file: SharedFile, position: int, length: int) -> None:
        """Tell the kernel that these bytes will be read soon; a hint."""
        ...

    def cached_bytes(self, file: SharedFile, position: int, length: int) -> int | None:
        """How much of the range is in the page cache, in whole pages; None when the kernel cannot tell."""
        ...

    def sync(self, file: SharedFile) -> None: ...

    def sync_folder(self, path: str) -> None: ...

    def list(self, path: str, *, sizes: bool = True) -> list[FileInfo]:
        """The names in a folder, unordered; without `sizes` sizes and times are 0 and it is cheaper."""
        ...

    def exists(self, path: str) -> bool: ...

    def make_folder(self, path: str) -> None:
        """Make the folder and its parents; nothing happens when it is there."""
        ...

    def rename(self, old: str, new: str) -> None: ...

    def remove(self, path: str) -> None:
        """Remove a file; nothing happens when it is not there."""
        ...

    def remove_folder(self, path: str) -> None:
        """Remove a folder with all that is in it; nothing happens when it is not there."""
        ...

    def load(self, path: str) -> bytes | None:
        """The content of a small file, or None when there is none."""
        ...

    def replace(self, path: str, content: Bytes, *, sync: bool = True) -> None:
        """Give a small file new content (F2), through `<path>.tmp`; durable at once when `sync`."""
        ...

    def lock(self, path: str) -> FolderLock:
        """Own the lock file `path`, which then holds our process id.  Raises FolderInUse."""
        ...


class OsFiles:
    """The real file system (POSIX)."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> SharedFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            return SharedFile(os.open(path, flags, 0o644), path)
        except OSError as error:
            raise disk_fault(path, error) from error

    def open_to_read(self, path: str) -> SharedFile:
        try:
            return SharedFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC), path)
        except OSError as error:
            raise disk_fault(path, error) from error

    def append(self, file: SharedFile, position: int, buffers: Sequence[Bytes]) -> None:
        try:
            if len(buffers) == 1 and os.pwrite(file.fileno(), buffers[0], position) == len(buffers[0]):
                return
            _write_all(file.fileno(), position, buffers)
        except OSError as error:
            with contextlib.suppress(OSError):  # the write's own error is the one that counts
                os.ftruncate(file.fileno(), position)
            raise disk_fault(file.path, error) from error

    def overwrite(self, file: SharedFile, position: int, buffers: Sequence[Bytes]) -> None:
        try:
            _write_all(file.fileno(), position, buffers)
        except OSError as error:
            raise disk_fault(file.path, error) from error

    def read(self, file: SharedFile, position: int, length: int) -> bytes:
        try:
            data = os.pread(file.fileno(), length, position)
            while 0 < len(data) < length:
                if not (more := os.pread(file.fileno(), length - len(data), position + len(data))):
                    break
                data += more
            return data
        except OSError as error:
            raise disk_fault(file.path, error) from error

    def read_into(self, file: SharedFile, position: int, buffer: memoryview) -> int:
        done = 0
        try:
            while done < len(buffer):
                count = os.preadv(file.fileno(), [buffer[done:]], position + done)
                if not count:
                    break
                done += count
        except OSError as error:
            raise disk_fault(file.path, error) from error
        return done

    def read_cold_into(self, file: SharedFile, position: int, buffer: memoryview) -> int:
        done = 0
        try:
            while done < len(buffer):
                count = os.preadv(file.fileno(), [buffer[done:]], position + done, _RWF_DONTCACHE)
                if not count:
                    break
                done += count
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise disk_fault(file.path, error) from error
            return done + self.read_into(file, position + done, buffer[done:])
        return done

    def size(self, file: SharedFile) -> int:
        try:
            return os.fstat(file.fileno()).st_size
        except OSError as error:
            raise disk_fault(file.path, error) from error

    def truncate(self, file: SharedFile, size_bytes: int) -> None:
        try:
            os.ftruncate(file.fileno(), size_bytes)
        except OSError as error:
            raise disk_fault(file.path, error) from error

    def allocate(self, file: SharedFile, size_bytes: int) -> None:
        try:
            os.posix_fallocate(file.fileno(), 0, size_bytes)
        except OSError as error:
            raise disk_fault(file.path, error) from error

    def map(self, file: SharedFile, length: int) -> MappedFile:
        try:
            return mmap.mmap(file.fileno(), length, prot=mmap.PROT_READ)
        except (OSError, ValueError) as error:  # ValueError: the file is shorter than that
            cause = error if isinstance(error, OSError) else OSError(str(error))
            raise disk_fault(file.path, cause) from error

    def remember(self, resource: SharedFile | MappedFile) -> None:
        _recent[id(resource)] = resource
        if len(_recent) > _RECENT_MAX:
            _recent.popitem(last=False)

    def drop(self, resource: SharedFile | MappedFile) -> None:
        _recent.pop(id(resource), None)

    def forget(self, file: SharedFile, position: int, length: int) -> None:
        with contextlib.suppress(OSError):
            os.posix_fadvise(file.fileno(), position, length, os.POSIX_FADV_DONTNEED)

    def prefetch(self, file: SharedFile, position: int, length: int) -> None:
        with contextlib.suppress(OSError):
            os.posix_fadvise(file.fileno(), position, length, os.POSIX_FADV_WILLNEED)

    def cached_bytes(self, file: SharedFile, position: int, length: int) -> int | None:
        if length <= 0:
            return 0  # to the kernel 0 means "to the end of the file"
        bounds = (ctypes.c_uint64 * 2)(position, length)
        counts = (ctypes.c_uint64 * 5)()  # cached, dirty, under writeback, evicted, recently evicted; pages
        if _libc.syscall(_CACHESTAT, file.fileno(), ctypes.byref(bounds), ctypes.byref(counts), 0) != 0:
            return None
        return counts[0] * mmap.PAGESIZE

    def sync(self, file: SharedFile) -> None:
        try:
            os.fdatasync(
                file.fileno()
            )  # also writes a changed length, which is all that we need of the inode
        except OSError as error:
            raise disk_fault(file.path, error) from error

    def sync_folder(self, path: str) -> None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise disk_fault(path, error) from error

    def list(self, path: str, *, sizes: bool = True) -> list[FileInfo]:
        try:
            with os.scandir(path) as entries:
                return list(_describe(entries, sizes))
        except OSError as error:
            raise disk_fault(path, error) from error

    def exists(self, path: str) -> bool:
        try:
            os.stat(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise disk_fault(path, error) from error
        return True

    def make_folder(self, path: str) -> None:
        try:
            os.makedirs(path, mode=0o755, exist_ok=True)
        except OSError as error:
            raise disk_fault(path, error) from error

    def rename(self, old: str, new: str) -> None:
        try:
            os.rename(old, new)
        except OSError as error:
            raise disk_fault(old, error) from error

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise disk_fault(path, error) from error

    def remove_folder(self, path: str) -> None:
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise disk_fault(path, error) from error

    def load(self, path: str) -> bytes | None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise disk_fault(path, error) from error
        try:
            chunks = []
            while chunk := os.read(fd, 1 << 16):
                chunks.append(chunk)
            return b"".join(chunks)
        except OSError as error:
            raise disk_fault(path, error) from error
        finally:
            os.close(fd)

    def replace(self, path: str, content: Bytes, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        self.truncate(file, 0)
        self.append(file, 0, [content])
        if sync:
            self.sync(file)
        self.rename(temporary, path)
        if sync:
            self.sync_folder(os.path.dirname(path) or ".")

    def lock(self, path: str) -> FolderLock:
        file = self.open(path, create=True)
        try:
            # flock keeps out every other holder, even in this process; lockf is the kind of lock that
            # Java takes, so a Kafka broker sees ours and we see its.
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = self.read(file, 0, 32).decode("ascii", "replace").strip() or "unknown"
            raise FolderInUse(f"{path}: held by process {owner}") from error
        self.truncate(file, 0)
        self.append(file, 0, [f"{os.getpid()}\n".encode("ascii")])
        return _OsLock(file)


class _OsLock:
    __slots__ = ("_file",)

    def __init__(self, file: SharedFile) -> None:
        self._file: SharedFile | None = file

    def release(self) -> None:
        if self._file is not None:
            self._file = None  # closing the file ends both locks


def _write_all(fd: int, position: int, buffers: Sequence[Bytes]) -> None:
    left = [view for buffer in buffers if len(view := memoryview(buffer))]
    while left:
        done = os.pwritev(fd, left[:_IOV_MAX], position)
        position += done
        while left and done >= len(left[0]):
            done -= len(left.pop(0))
        if done:
            left[0] = left[0][done:]


def _describe(entries: Iterable[os.DirEntry[str]], sizes: bool) -> Iterator[FileInfo]:
    for entry in entries:
        if not sizes:
            yield FileInfo(entry.name, entry.is_dir(), 0, 0)
            continue
        try:
            status = entry.stat()
        except FileNotFoundError:  # removed while we looked
            continue
        yield FileInfo(entry.name, entry.is_dir(), status.st_size, status.st_mtime_ns // 1_000_000)
