"""A disk in memory that loses power, fails, and runs full where a test wants it to."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from random import Random
from threading import RLock, current_thread
from typing import NamedTuple

from purgatory.delayed.storage.disk import Disk, File
from purgatory.delayed.storage.requests import StoreFailed


class PowerCut(BaseException):
    """The power went off in the middle of an operation. No code survives it, so no code may catch it."""


class Fate(Enum):
    """What becomes of a change that was not synced when the power went off."""

    LOST = auto()
    KEPT = auto()
    # Only the first bytes of a write are kept.
    HEAD = auto()
    # Only the last bytes of a write are kept. The disk has garbage or zeros in place of the others.
    TAIL = auto()
    # The file has its new length, and garbage or zeros in it.
    GARBAGE = auto()


class Survival:
    """Decides the fate of each change, by chance or always in the same way."""

    def __init__(self, random: Random, fate: Fate | None = None) -> None:
        self.random = random
        self._fate = fate

    def fate(self) -> Fate:
        return self._fate or self.random.choice(list(Fate))

    def filler(self, length: int) -> bytes:
        return self.random.choice([bytes(length), self.random.randbytes(length)])


class Write(NamedTuple):
    offset: int
    data: bytes


class Truncation(NamedTuple):
    size: int


class Naming(NamedTuple):
    """A name that was given to a file or directory, or taken away. A renamed file has an old name, too."""

    name: str
    node: Content | Names | None
    old: str | None = None


@dataclass(eq=False)
class Content:
    """A file: what processes see, what is on the disk for certain, and the changes between the two."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    unsynced: list[Write | Truncation] = field(default_factory=list)
    # Changes whose sync has failed. A later sync does not write them.
    dropped: list[Write | Truncation] = field(default_factory=list)

    def after_power_cut(self, survival: Survival) -> Content:
        data = bytearray(self.durable)
        for change in self.dropped + self.unsynced:
            _keep(data, change, survival)
        return Content(data, bytes(data))


@dataclass(eq=False)
class Names:
    """A directory."""

    entries: dict[str, Content | Names] = field(default_factory=dict)
    durable: dict[str, Content | Names] = field(default_factory=dict)
    unsynced: list[Naming] = field(default_factory=list)

    def change(self, naming: Naming) -> None:
        self.unsynced.append(naming)
        _name(self.entries, naming)

    def after_power_cut(self, survival: Survival) -> Names:
        entries = dict(self.durable)
        for naming in self.unsynced:
            if survival.fate() not in (Fate.LOST, Fate.GARBAGE):
                _name(entries, naming)
        kept = {name: node.after_power_cut(survival) for name, node in entries.items()}
        return Names(kept, dict(kept))


def _name(entries: dict[str, Content | Names], naming: Naming) -> None:
    if naming.old is not None:
        entries.pop(naming.old, None)
    if naming.node is None:
        entries.pop(naming.name, None)
    else:
        entries[naming.name] = naming.node


def _keep(data: bytearray, change: Write | Truncation, survival: Survival) -> None:
    fate = survival.fate()
    if fate is Fate.LOST:
        return
    if isinstance(change, Truncation):
        del data[change.size :]
        return
    offset, new = change
    cut = survival.random.randint(0, len(new))
    if fate is Fate.HEAD:
        new = new[:cut]
    elif fate is Fate.TAIL:
        new = survival.filler(cut) + new[cut:]
    elif fate is Fate.GARBAGE:
        new = survival.filler(len(new))
    _write(data, offset, new)


def _write(data: bytearray, offset: int, new: bytes) -> None:
    data.extend(bytes(max(0, offset - len(data))))
    data[offset : offset + len(new)] = new


@dataclass(eq=False)
class Fault:
    """Some operations of one thread, or on one file, that fail. No other operation meets it."""

    operation: str
    error: int
    # Operations that succeed before, and operations that fail.
    after: int
    times: int
    # A part of the thread's name, and the file or a directory above it; None stands for any.
    thread: str | None
    path: Path | None

    def meet(self, operation: str, path: Path) -> None:
        """Raise OSError if this operation is to fail."""
        if operation != self.operation or self.times == 0:
            return
        if self.thread is not None and self.thread not in current_thread().name:
            return
        if self.path is not None and not path.is_relative_to(self.path):
            return
        if self.after:
            self.after -= 1
        else:
            self.times -= 1
            raise OSError(self.error, os.strerror(self.error))


class SimulatedFile(File):
    __slots__ = ("_content", "_disk", "_path")

    def __init__(self, disk: SimulatedDisk, content: Content, path: Path) -> None:
        self._disk = disk
        self._content = content
        self._path = path
        self.size = len(content.data)

    def append(self, data: bytes) -> None:
        with self._disk.operation("append", self._path):
            room = self._disk.room
            written = data if room is None else data[:room]
            self._change(Write(self.size, written))
            if len(written) < len(data):
                self._change(Truncation(self.size))
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.size += len(data)

    def _change(self, change: Write | Truncation) -> None:
        self._content.unsynced.append(change)
        if isinstance(change, Write):
            _write(self._content.data, *change)
        else:
            del self._content.data[change.size :]

    def sync(self) -> None:
        content = self._content
        try:
            with self._disk.sync("sync", self._path):
                durable = bytearray(content.durable)
                for change in content.unsynced:
                    _keep(durable, change, EVERYTHING)
                content.durable = bytes(durable)
        except OSError as error:
            content.dropped += content.unsynced
            raise StoreFailed(f"the disk failed to sync a file: {error}") from error
        finally:
            content.unsynced = []

    def read(self, offset: int, length: int) -> bytes:
        with self._disk.reading(self._path):
            return bytes(self._content.data[offset : offset + length])

    def close(self) -> None:
        self._disk.opened -= 1
        if not self._disk.off:
            with self._disk.reading(self._path, "close"):
                pass


class SimulatedDisk(Disk):
    """Keeps apart what processes see and what is on the disk for certain.

    A write is on the disk after `sync`, and a name after `sync_directory`. `cut_power_at` is the number of
    the operation in which the power goes off: a change is begun then, and a sync is not. `fail` lets an
    operation raise OSError. `capacity` is the number of bytes in all files; None is without a limit.
    `opened` counts the open files.
    """

    def __init__(self, root: Names | None = None) -> None:
        self._root = Names() if root is None else root
        self._locked: set[int] = set()
        self._mutex = RLock()
        self._faults: list[Fault] = []
        self.operations = 0
        self.cut_power_at: int | None = None
        self.off = False
        self.capacity: int | None = None
        self.opened = 0
        # Called before each operation with its name.
        self.watch: Callable[[str], object] = lambda operation: None

    # What tests do with it

    def after_power_cut(self, survival: Survival) -> SimulatedDisk:
        """The disk as a process finds it that starts after the power is back."""
        return SimulatedDisk(self._root.after_power_cut(survival))

    def fail(
        self,
        operation: str,
        error: int = errno.EIO,
        *,
        thread: str | None = None,
        path: Path | None = None,
        times: int = 1,
        after: int = 0,
    ) -> None:
        """Let the next `times` operations of this name fail, `after` others that succeed.

        Those of a thread whose name has `thread` in it, or on `path` and below; without the two, those of the
        thread that calls this. An open store has several threads, and nobody knows which one comes first.
        """
        if thread is None and path is None:
            thread = current_thread().name
        self._faults.append(Fault(operation, error, after, times, thread, path))

    @property
    def room(self) -> int | None:
        return None if self.capacity is None else max(0, self.capacity - self.used)

    @property
    def used(self) -> int:
        return _bytes(self._root)

    def content(self, path: Path) -> Content:
        node = self._find(path)
        assert isinstance(node, Content)
        return node

    def operation(self, name: str, path: Path) -> _Operation:
        """A change: if the power goes off, it has begun."""
        return _Operation(self, name, path, begins=True)

    def sync(self, name: str, path: Path) -> _Operation:
        """A sync: if the power goes off, it has not begun."""
        return _Operation(self, name, path, begins=False)

    def reading(self, path: Path, name: str = "read") -> _Operation:
        """What changes nothing."""
        return _Operation(self, name, path, begins=None)

    def begin(self, name: str, path: Path) -> None:
        if self.off:
            raise PowerCut
        for fault in self._faults:
            fault.meet(name, path)

    # What the store does with it

    def hold(self, path: Path) -> int:
        return hash(path)

    def lock(self, held: int) -> None:
        if held in self._locked:
            raise BlockingIOError
        self._locked.add(held)

    def release(self, held: Iterable[int]) -> None:
        self._locked.difference_update(held)

    def holds(self, held: int, path: Path) -> bool:
        return self._find(path.parent) is not None

    def make_directory(self, path: Path) -> None:
        if self._find(path.parent) is None:
            self.make_directory(path.parent)
        with self.operation("make_directory", path):
            parent = self._names(path.parent)
            if path.name not in parent.entries:
                parent.change(Naming(path.name, Names()))
        self.sync_directory(path.parent)

    def names(self, directory: Path) -> list[str]:
        with self.reading(directory):
            node = self._find(directory)
            return list(node.entries) if isinstance(node, Names) else []

    def sync_directory(self, directory: Path) -> None:
        names = self._names(directory)
        try:
            with self.sync("sync_directory", directory):
                names.durable = dict(names.entries)
                names.unsynced = []
        except OSError as error:
            raise StoreFailed(f"the disk failed to sync {directory}: {error}") from error

    def sync_files(self, files: Sequence[File]) -> None:
        """One after the other, so that a run of a test can be repeated."""
        for file in files:
            file.sync()

    def open(self, path: Path) -> File:
        node = self._find(path)
        with self.operation("open", path) if node is None else self.reading(path):
            if node is None:
                node = Content()
                self._names(path.parent).change(Naming(path.name, node))
            assert isinstance(node, Content)
            self.opened += 1
            return SimulatedFile(self, node, path)

    def open_existing(self, path: Path) -> File | None:
        with self.reading(path):
            node = self._find(path)
            if node is None:
                return None
            assert isinstance(node, Content)
            self.opened += 1
            return SimulatedFile(self, node, path)

    def replace(self, path: Path, data: bytes) -> None:
        new = path.with_name(f"{path.name}.new")
        # A fault of the file is one of the new file, too.
        with self.operation("open", path):
            content = Content()
            self._names(path.parent).change(Naming(new.name, content))
            self.opened += 1
        file = SimulatedFile(self, content, path)
        try:
            file.append(data)
            file.sync()
        finally:
            file.close()
        with self.operation("rename", path):
            self._names(path.parent).change(Naming(path.name, content, new.name))
        self.sync_directory(path.parent)

    def truncate(self, path: Path, size: int) -> None:
        with self.operation("truncate", path):
            content = self.content(path)
            content.unsynced.append(Truncation(size))
            del content.data[size:]

    def remove(self, path: Path) -> None:
        if self._find(path.parent) is not None:
            with self.operation("remove", path):
                self._names(path.parent).change(Naming(path.name, None))
            self.sync_directory(path.parent)

    def remove_directory(self, path: Path) -> None:
        with self.operation("remove_directory", path):
            names = self._find(path)
            if isinstance(names, Names) and not names.entries:
                self._names(path.parent).change(Naming(path.name, None))

    def _find(self, path: Path) -> Content | Names | None:
        node: Content | Names | None = self._root
        for name in path.parts[1:]:
            node = node.entries.get(name) if isinstance(node, Names) else None
        return node

    def _names(self, path: Path) -> Names:
        node = self._find(path)
        if not isinstance(node, Names):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return node


class _Operation:
    """Counts an operation of the disk, and lets it fail or lose power. One thread at a time."""

    def __init__(self, disk: SimulatedDisk, name: str, path: Path, *, begins: bool | None) -> None:
        self._disk = disk
        self._name = name
        self._path = path
        self._begins = begins

    def __enter__(self) -> None:
        disk = self._disk
        disk.watch(self._name)
        disk._mutex.acquire()
        try:
            disk.begin(self._name, self._path)
            if self._begins is not None:
                disk.operations += 1
                if disk.operations == disk.cut_power_at:
                    disk.off = True
                    if not self._begins:
                        raise PowerCut
        except BaseException:
            disk._mutex.release()
            raise

    def __exit__(self, *_: object) -> None:
        disk = self._disk
        disk._mutex.release()
        if disk.off and self._begins:
            raise PowerCut


def _bytes(node: Content | Names) -> int:
    return len(node.data) if isinstance(node, Content) else sum(map(_bytes, node.entries.values()))


EVERYTHING = Survival(Random(0), Fate.KEPT)
NOTHING = Survival(Random(0), Fate.LOST)
