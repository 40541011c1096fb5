"""The file system as the store uses it. The tests put a disk that fails in its place."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from purgatory.delayed.storage.requests import StoreFailed

Append = Callable[[Path, bytes | bytearray, int], int]
"""Appends data to a file, after zeros up to an alignment. Returns the new size of the file."""

_CREATE: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_CLOEXEC
# Syncs at a time.
_SYNCS: Final = 32
# Files that are open and not synced at a time. A process may often open 1,024 in all.
_OPEN: Final = 128
# On macOS, fsync leaves the data in the drive's cache.
_FULL_SYNC: Final = getattr(fcntl, "F_FULLFSYNC", None)


class File:
    """An open file that grows at its end. Each method may raise OSError."""

    __slots__ = ("_descriptor", "size")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def append(self, data: bytes) -> None:
        """Write all of `data` at the end, or nothing. Raises StoreFailed if a part of it has to stay."""
        view = memoryview(data)
        written = 0
        try:
            while written < len(view):
                written += os.pwrite(self._descriptor, view[written:], self.size + written)
        except OSError:
            try:
                os.ftruncate(self._descriptor, self.size)
            except OSError as error:
                raise StoreFailed(f"the disk keeps a part of what cannot be written: {error}") from error
            raise
        self.size += written

    def sync(self) -> None:
        """Return when all that was written is on the disk. Raises StoreFailed instead of OSError.

        After a failed sync the kernel may have dropped what it could not write, and a second sync would not
        tell (https://lwn.net/Articles/752063/).
        """
        try:
            if _FULL_SYNC is not None:
                fcntl.fcntl(self._descriptor, _FULL_SYNC)
            else:
                os.fdatasync(self._descriptor)
        except OSError as error:
            raise StoreFailed(f"the disk failed to sync a file: {error}") from error

    def read(self, offset: int, length: int) -> bytes:
        """The bytes from `offset`; fewer than `length` at the end of the file."""
        return os.pread(self._descriptor, length, offset)

    def close(self) -> None:
        os.close(self._descriptor)


# The locks of this process.
_locks: set[int] = set()


def _leave_locks() -> None:
    """A lock lasts as long as a process has its descriptor. A forked child must not keep its parent's."""
    while _locks:
        os.close(_locks.pop())


os.register_at_fork(after_in_child=_leave_locks)


class Disk:
    """What the store asks of a file system. Each method may raise OSError."""

    def lock(self, path: Path) -> int:
        """Lock a file until the process ends, or until `unlock`. Raises BlockingIOError if it is locked."""
        descriptor = os.open(path, _CREATE, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        _locks.add(descriptor)
        return descriptor

    def unlock(self, lock: int) -> None:
        # In a forked child, it was closed already.
        if lock in _locks:
            _locks.remove(lock)
            # A child that is just being forked has the descriptor, too.
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)

    def holds(self, lock: int, path: Path) -> bool:
        """Whether the locked file still has this path. It has another one when its directory was renamed."""
        try:
            return os.path.samestat(os.fstat(lock), os.stat(path))
        except OSError:
            return False

    def make_directory(self, path: Path) -> None:
        """Make a directory, and its parents that do not exist. Its name is on the disk after that."""
        if not path.parent.exists():
            self.make_directory(path.parent)
        with suppress(FileExistsError):
            os.mkdir(path)
        self.sync_directory(path.parent)

    def names(self, directory: Path) -> list[str]:
        """The names in a directory; none if there is no such directory."""
        try:
            return os.listdir(directory)
        except FileNotFoundError:
            return []

    def sync_directory(self, directory: Path) -> None:
        """Return when the names of the directory's files are on the disk. Raises StoreFailed, as `sync`."""
        with _opened(directory) as sync:
            sync()

    def sync_files(self, files: Sequence[File]) -> None:
        """Sync these files. Syncs that run at the same time share the flushes of the disk.

        On ext4, eight at a time took a twentieth of the time of one after the other, and 32 at a time made a
        restart shorter by another third.
        """
        with ThreadPoolExecutor(_SYNCS, thread_name_prefix="purgatory delayed sync") as threads:
            list(threads.map(File.sync, files))

    @contextmanager
    def appending(self) -> Iterator[Append]:
        """Appends data to files. All data is on the disk after the ``with`` block.

        When an OSError leaves the block, because a file found no room, all data is taken back. Otherwise each
        attempt on a full disk would leave a part, and take the room that others need.
        """
        sizes: list[tuple[Path, int]] = []
        # Not synced yet.
        files: list[File] = []

        def close() -> None:
            while files:
                files.pop().close()

        def append(path: Path, data: bytes | bytearray, alignment: int) -> int:
            file = self.open(path)
            files.append(file)
            sizes.append((path, file.size))
            file.append(bytes(-file.size % alignment) + data)
            size = file.size
            if len(files) == _OPEN:
                self.sync_files(files)
                close()
            return size

        try:
            yield append
            self.sync_files(files)
        except OSError:
            close()
            # If some data stays, it is harmless.
            for path, size in reversed(sizes):
                with suppress(OSError):
                    self.truncate(path, size)
            raise
        finally:
            close()

    def open(self, path: Path) -> File:
        """Open a file, and make it if it does not exist. Its name is on the disk after `sync_directory`."""
        return File(os.open(path, _CREATE, 0o666))

    def open_existing(self, path: Path) -> File | None:
        """Open a file to read it; None if it does not exist."""
        try:
            return File(os.open(path, _READ))
        except FileNotFoundError:
            return None

    def read(self, path: Path) -> bytes | None:
        file = self.open_existing(path)
        if file is None:
            return None
        with closing(file):
            return file.read(0, file.size)

    def size(self, path: Path) -> int | None:
        file = self.open_existing(path)
        if file is not None:
            file.close()
        return None if file is None else file.size

    def replace(self, path: Path, data: bytes) -> None:
        """Put `data` in the place of a file's content, wholly or not at all. It is on the disk after that."""
        new = path.with_name(f"{path.name}.new")
        with closing(File(os.open(new, _CREATE | os.O_TRUNC, 0o666))) as file:
            file.append(data)
            file.sync()
        os.replace(new, path)
        self.sync_directory(path.parent)

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file off after `size` bytes. A crash may bring them back."""
        os.truncate(path, size)

    def remove(self, path: Path) -> None:
        """Remove a file, if it exists. Its name is gone from the disk after that.

        Raises OSError if it stays, and StoreFailed if nobody knows: then it may come back after a crash.
        """
        # To open the directory may fail, for example when too many files are open. So it comes first.
        with suppress(FileNotFoundError), _opened(path.parent) as sync:
            with suppress(FileNotFoundError):
                os.unlink(path)
            sync()

    def remove_directory(self, path: Path) -> None:
        """Remove a directory, unless it has files or is gone."""
        try:
            os.rmdir(path)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise


@contextmanager
def _opened(directory: Path) -> Iterator[Callable[[], None]]:
    """Opens a directory. The function syncs it."""
    descriptor = os.open(directory, _READ)

    def sync() -> None:
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise StoreFailed(f"the disk failed to sync {directory}: {error}") from error

    try:
        yield sync
    finally:
        os.close(descriptor)
