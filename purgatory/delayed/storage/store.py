"""A directory with messages: the log, the slot files, the ids, and the checkpoint between them."""

from __future__ import annotations

import logging
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar, TypeVarTuple

from purgatory.delayed import schedule
from purgatory.delayed.message import Location, Message
from purgatory.delayed.storage.agenda import Agenda, Found, position_in
from purgatory.delayed.storage.checkpoint import RESTORE, Checkpoint, Format
from purgatory.delayed.storage.commit import Commit
from purgatory.delayed.storage.dead_letters import DeadLetters
from purgatory.delayed.storage.disk import Disk
from purgatory.delayed.storage.frames import ENDS, SOON, Damage
from purgatory.delayed.storage.ids import record_of
from purgatory.delayed.storage.log import Log
from purgatory.delayed.storage.mover import Mover
from purgatory.delayed.storage.pending import Pending, read_messages
from purgatory.delayed.storage.requests import Answer, Request, StoreFailed, StoreLocked
from purgatory.delayed.storage.slots import SlotFiles

A = TypeVarTuple("A")
T = TypeVar("T")

# Bytes of payloads that are read at a time.
_READ: Final = 1 << 23
# Bytes of the log from which on it is moved as a whole when the store is opened.
_LONG: Final = 1 << 27

logger = logging.getLogger("purgatory.delayed")


class Store:
    """A directory with messages. It knows no clock and no event loop.

    These threads may use it at a time: one that writes the log (`commit`, `log.seal`), one that changes other
    files (by `change`), and any number that read.

    A message is written to the log first, then to its slot file, whose directory is synced, and then the
    checkpoint is written. Only then its segment of the log is removed. So after a crash at any point, the log
    has all messages that may be missing in the slot files.
    """

    def __init__(self, path: Path, slot_ms: int, disk: Disk, now: int) -> None:
        """Open the directory, or make it, and find what a crash has left in the log.

        The cost depends on the log, and not on how much is pending. Raises OSError, StoreLocked, and
        ValueError if the directory was made with another length of a slot, or if its format or its checkpoint
        is damaged or missing.
        """
        self.path = path
        self._disk = disk
        disk.make_directory(path)
        # What must stay in its place. It is held, so that no other file gets its inode.
        self._held: dict[Path, int] = {}
        # The damages that were logged.
        self._reported: set[tuple[str, Damage]] = set()
        # Why nothing can be changed any more.
        self._failure: StoreFailed | None = None
        try:
            for part in (path, path / "lock"):
                self._held[part] = disk.hold(part)
            try:
                disk.lock(self._held[path / "lock"])
            except BlockingIOError:
                raise StoreLocked(f"{path} is open already: one object in one process can use it") from None
            self._salt = self._read_salt(slot_ms)
            for name in ("wal", "slots", "ids"):
                disk.make_directory(path / name)
                self._held[path / name] = disk.hold(path / name)
            self.log = Log(disk, path / "wal", self._salt)
            self.slots = SlotFiles(disk, path / "slots", self._salt, slot_ms)
            self.mover = Mover(disk, path, self.log, self.slots, self._report)
            self.ids = self.mover.ids
            self.dead_letters = DeadLetters(disk, path / "dead-letters", self._salt)
            # What the log has of what is due soon, and how many messages of that each segment has.
            self.agenda = self._recover(now)
            self.segments = self.agenda.homes()
            # The blocks of `Mover.move_all` have larger numbers than the segments.
            self.log.go_on_after(self.mover.checkpoint.spread)
        except BaseException:
            disk.release(self._held.values())
            raise

    def close(self) -> None:
        """Close the files, and unlock the directory. The other threads must have ended."""
        try:
            self.log.seal()
        finally:
            self._disk.release(self._held.values())

    def commit(self, requests: Sequence[Request]) -> list[Answer]:
        """Write the requests to the log with one sync, and answer each: see `Commit`.

        Raises OSError if the disk is full, for example: then nothing was written. Raises StoreFailed when
        nobody knows what was written.
        """
        commit = Commit(self._salt, self.ids, requests)
        if not commit.data:
            return commit.answers(0)
        segment, offset = self.change(self.log.append, bytes(commit.data))
        for note in commit.notes:
            self.ids.note(segment, note)
        return commit.answers(position_in(segment, offset))

    def change(self, call: Callable[[*A], T], *arguments: *A) -> T:
        """Call what changes files. After an OSError it can be called again.

        Raises StoreFailed after a failed sync, because a second sync may succeed though the data is lost, and
        when a directory is gone.
        """
        if self._failure is not None:
            raise StoreFailed(f"an earlier sync failed: {self._failure}") from self._failure
        try:
            self._check_directories()
            try:
                return call(*arguments)
            finally:
                # When a directory is gone, data can still be written to an open file.
                self._check_directories()
        except StoreFailed as error:
            self._failure = error
            raise

    def _check_directories(self) -> None:
        """Raise StoreFailed if a directory was removed or renamed, or another one is in its place.

        Then its files look empty or missing, and data that is written to an open file is lost.
        """
        for part, held in self._held.items():
            if not self._disk.holds(held, part):
                raise StoreFailed(f"{part} was removed, renamed or replaced while it was open")

    def index(self, slot: int) -> Agenda:
        """Find the messages of a slot file. What is damaged in it is logged, and lost."""
        found = self.slots.find(slot)
        for damage in found.damaged:
            self._report(f"the file of slot {slot}", damage)
        return Agenda([found])

    def read(self, locations: Iterable[Location]) -> list[Message | OSError | None]:
        """The messages at these locations. It stops after 8 MiB of payloads.

        None stands for a damaged message, and an OSError for one that cannot be read now. Both are logged.
        """
        messages: list[Message | OSError | None] = []
        size = 0
        for (due, *_), message in read_messages(self.log, self.slots, locations):
            messages.append(message)
            if isinstance(message, Message):
                size += len(message.payload)
                if size > _READ:
                    break
            elif message is None:
                self._check_directories()
                logger.error("%s: a message due at %d was lost: its frame is damaged", self.path, due)
            else:
                logger.error("%s: a message due at %d cannot be read: %s", self.path, due, message)
        return messages

    def pending(self) -> Iterator[Message]:
        """All messages that are still to come. See `Pending`. Raises OSError."""
        return Pending(self.log, self.slots, self._report).messages(self.mover.checkpoint)

    def _report(self, what: str, damage: Damage) -> None:
        """Log what is damaged. The same bytes are read several times, but logged once."""
        if (what, damage) not in self._reported:
            self._reported.add((what, damage))
            size = damage.end - damage.offset
            logger.error("%s: %s: %d bytes from byte %d are damaged", self.path, what, size, damage.offset)

    def _read_salt(self, slot_ms: int) -> int:
        """The salt of the store. A new store gets one."""
        format = Format.read(self._disk, self.path)
        if format is None:
            if any(self._disk.names(self.path / name) for name in ("wal", "slots")):
                raise ValueError(f"{self.path / 'format'} is missing: {RESTORE}")
            format = Format(slot_ms, secrets.randbits(32))
            # The format comes last: where it is, the checkpoint is, too.
            Checkpoint().write(self._disk, self.path)
            format.write(self._disk, self.path)
        elif format.slot_ms != slot_ms:
            made = format.slot_ms / 1000
            raise ValueError(f"{self.path} was made with slot={made}, not {slot_ms / 1000}: use slot={made}")
        return format.salt

    def _recover(self, now: int) -> Agenda:
        """Learn what the log has, and start a new segment. The next move takes what is due later.

        A long log moves to the slot files as a whole instead. So does a log with messages that are not due
        soon any more, because the clock was wrong. Otherwise each opening would read it again.
        """
        spread, emptied = self.mover.checkpoint
        self.log.remove_left_over()
        self.log.remove_oldest(emptied, needed=())
        numbers = self.log.numbers()
        for number in numbers:
            if not self.log.size(number):
                words = "a crash came before its first message was stored, or its messages are lost"
                logger.warning("%s: segment %d of the log is empty: %s", self.path, number, words)
        # A move to the slot files that a crash has ended must be finished: see `Mover.move_all`.
        moving = bool(numbers) and spread > numbers[-1]
        too_long = sum(map(self.log.size, numbers)) > _LONG
        if moving or too_long or (agenda := self._index_log(numbers, now)) is None:
            self.mover.move_all(numbers, now)
            return Agenda()
        return agenda

    def _index_log(self, numbers: Sequence[int], now: int) -> Agenda | None:
        """Find what is due soon in these segments; None if there is a message that is not.

        The ids of segments that are not spread are remembered, as after a commit.
        """
        contents: defaultdict[int, Found] = defaultdict(Found)
        last = schedule.last_soon(now, self.slots.slot_ms)
        if numbers:
            self.log.rewrite(numbers[-1])
        for number in numbers:
            spread = number <= self.mover.checkpoint.spread
            for frame in self.mover.frames(number):
                if frame.kind == SOON:
                    if frame.due > last:
                        return None
                    contents[self.slots.slot_of(frame.due)].add(frame, position_in(number, frame.offset))
                elif frame.kind in ENDS and (slot := self.slots.slot_of(frame.due)) in contents:
                    contents[slot].ended.append(frame.token)
                if not spread and (record := record_of(frame)) is not None:
                    self.ids.note(number, record)
        return Agenda(contents.values())
