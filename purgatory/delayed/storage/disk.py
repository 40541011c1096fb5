"""The file system as the store uses it. The tests put a disk that fails in its place."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
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


# What this process holds.
_held: set[int] = set()


def _leave_held() -> None:
    """A lock lasts as long as a process has its descriptor. A forked child must not keep its parent's."""
    while _held:
        os.close(_held.pop())


os.register_at_fork(after_in_child=_leave_held)


class Disk:
    """What the store asks of a file system. Each method may raise OSError."""

    def hold(self, path: Path) -> int:
        """Keep a directory open until `release`, or a file, which is made if it does not exist."""
        held = os.open(path, _READ if path.is_dir() else _CREATE, 0o666)
        _held.add(held)
        return held

    def lock(self, held: int) -> None:
        """Lock a file until `release`, or until the process ends. Raises BlockingIOError if it is locked."""
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self, held: Iterable[int]) -> None:
        # In a forked child, they were closed already.
        for each in _held.intersection(held):
            _held.remove(each)
            # A child that is just being forked has the descriptor, too.
            fcntl.flock(each, fcntl.LOCK_UN)
            os.close(each)

    def holds(self, held: int, path: Path) -> bool:
        """Whether what is held still has this path. It has another one when its directory was renamed."""
        try:
            return os.path.samestat(os.fstat(held), os.stat(path))
        except OSError:
            return False

    def make_directory(self, path: Path) -> None:
        """Make a directory, and its parents that do not exist. Its name is on the disk after that."""
        if not path.parent.exists():
            self.make_directory(path.parent)
        path.mkdir(exist_ok=True)
        self.sync_directory(path.parent)

    def names(self, directory: Path) -> list[str]:
        """The names in a directory; none if there is no such directory."""
        try:
            return os.listdir(directory)
        except FileNotFoundError:
            return []

    def sync_directory(self, directory: Path) -> None:
        """Return when the names of the directory's files are on the disk. Raises StoreFailed, as `sync`."""
        with _synced(directory):
            pass

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
        with suppress(FileNotFoundError), _synced(path.parent):
            path.unlink(missing_ok=True)

    def remove_directory(self, path: Path) -> None:
        """Remove a directory, unless it has files or is gone."""
        try:
            os.rmdir(path)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise


@contextmanager
def _synced(directory: Path) -> Iterator[None]:
    """Syncs a directory after the ``with`` block."""
    # To open it may fail, for example when too many files are open. So that comes first.
    descriptor = os.open(directory, _READ)
    try:
        yield
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise StoreFailed(f"the disk failed to sync {directory}: {error}") from error
    finally:
        os.close(descriptor)
