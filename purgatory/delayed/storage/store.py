"""A directory with messages: the log, the slot files, the ids, and the checkpoint between them."""

from __future__ import annotations

import logging
import secrets
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from purgatory.delayed import schedule
from purgatory.delayed.message import Location, Message, Receipt
from purgatory.delayed.storage.blocks import record_of
from purgatory.delayed.storage.checkpoint import (
    RESTORE,
    Checkpoint,
    Format,
    read_format,
    write_checkpoint,
    write_format,
)
from purgatory.delayed.storage.dead_letters import DeadLetter, DeadLetters
from purgatory.delayed.storage.disk import Disk
from purgatory.delayed.storage.frames import (
    CANCELLED,
    ENDS,
    LATER,
    SOON,
    Damage,
    encode,
    end_body,
    message_body,
)
from purgatory.delayed.storage.ids import Ended, Ids, Taken, bucket_of, digest
from purgatory.delayed.storage.index import Found, Index, position_in
from purgatory.delayed.storage.log import Log
from purgatory.delayed.storage.mover import Mover
from purgatory.delayed.storage.pending import Pending
from purgatory.delayed.storage.reader import Reader
from purgatory.delayed.storage.requests import (
    Answer,
    Find,
    IdTaken,
    Put,
    Request,
    Stored,
    StoreFailed,
    StoreLocked,
)
from purgatory.delayed.storage.slots import SlotFiles

# Bytes of payloads that are read at a time.
_READ: Final = 1 << 23
# Bytes of a token.
_TOKEN: Final = 8
# Bytes of the log from which on it is moved as a whole when the store is opened.
_LONG: Final = 1 << 27

logger = logging.getLogger("purgatory.delayed")


class Store:
    """A directory with messages. It knows no clock and no event loop.

    These threads may use it at a time: one that writes the log (`commit`, `seal`), one that moves messages
    on (`spread`, `remove_segments`, `remove_slot`, `set_aside`), and any number that read (the rest).

    What is written goes to the log first, then to the slot files and their directories, then to the
    checkpoint; then the segment of the log is removed. After a crash at any point, the log has what the slot
    files do not have for certain.
    """

    def __init__(self, path: Path, slot_ms: int, disk: Disk, now: int) -> None:
        """Open the directory, or make it, and find what a crash has left in the log.

        The cost is that of the log, and does not depend on how much is pending. Raises OSError, StoreLocked,
        and ValueError if the directory was made with another length of a slot, or if its format or its
        checkpoint is damaged or missing.
        """
        self.path = path
        self._disk = disk
        disk.make_directory(path)
        try:
            self._lock = disk.lock(path / "lock")
        except BlockingIOError:
            raise StoreLocked(f"{path} is open already: one object in one process can use it") from None
        # What was damaged so far.
        self._reported: set[tuple[str, Damage]] = set()
        # Why the thread that moves messages on cannot go on.
        self._failure: StoreFailed | None = None
        # The oldest segment that there is, or will be.
        self.oldest = 0
        self._in_log = Index()
        try:
            self._salt = self._read_salt(slot_ms)
            for name in ("wal", "slots", "ids"):
                disk.make_directory(path / name)
            self.log = Log(disk, path / "wal", self._salt)
            self.slots = SlotFiles(disk, path / "slots", self._salt, slot_ms)
            self.ids = Ids(disk, path / "ids")
            self._mover = Mover(disk, path, self.log, self.slots, self.ids, self._report)
            self._dead_letters = DeadLetters(disk, path / "dead-letters", self._salt)
            self._recover(now)
        except BaseException:
            disk.unlock(self._lock)
            raise

    @property
    def checkpoint(self) -> int:
        """The last segment whose messages that are due later were moved to the slot files."""
        return self._mover.checkpoint.spread

    def close(self) -> None:
        """Close the files, and unlock the directory. The other threads must have ended."""
        try:
            self.log.seal()
        finally:
            self._disk.unlock(self._lock)

    # The thread that writes

    def commit(self, requests: Sequence[Request]) -> list[Answer]:
        """Write the requests to the log with one sync, and answer each.

        The answer to a Put whose id is taken is IdTaken, or the earlier message if it is the same. The answer
        to an End is whether the message had not ended before. The answer to a Find is the receipt of the
        message that is still to come, or None. Raises OSError if the disk is full, for example: then nothing
        of it was written. Raises StoreFailed when nobody knows what was written.
        """
        frames: list[bytes] = []
        size = 0
        answers: list[Answer] = []
        notes: list[Taken | Ended] = []
        taken: dict[str, Taken] = {}
        ended: set[int] = set()
        # The random numbers of all tokens are one call of the system.
        puts = sum(isinstance(request, Put) for request in requests)
        tokens = iter(array("Q", secrets.randbits(_TOKEN * 8 * puts).to_bytes(_TOKEN * puts, "little")))

        def holder(name: str) -> Taken | None:
            found = taken.get(name) or self.ids.taken(name)
            return None if found is None or found.token in ended else found

        for request in requests:
            frame = b""
            if isinstance(request, Put):
                token = next(tokens)
                name = request.name
                if name is not None:
                    earlier = holder(name)
                    content = digest(request.payload)
                    if earlier is not None:
                        if (earlier.due, earlier.digest) == (request.due, content):
                            answers.append(Stored(earlier.token, 0, repeated=True))
                            continue
                        if earlier.token not in request.delivering:
                            words = f"the id {name!r} belongs to another message that is still to come"
                            answers.append(IdTaken(words))
                            continue
                    hashed = digest(name.encode())
                    token = token - bucket_of(token) + bucket_of(hashed)
                    taken[name] = Taken(token, request.due, hashed, content)
                    notes.append(taken[name])
                body = message_body(name, request.payload)
                frame = encode(self._salt, SOON if request.soon else LATER, request.due, token, body)
                answers.append(Stored(token, size))
            elif isinstance(request, Find):
                found = holder(request.name)
                answers.append(found and Receipt(request.name, found.due / 1000, found.token))
            else:
                token = request.token
                fresh = not request.check or not (token in ended or self.ids.ended(token))
                answers.append(fresh)
                ended.add(token)
                if fresh:
                    frame = encode(self._salt, request.kind, request.due, token, end_body(request.named))
                    if request.named or request.kind is CANCELLED:
                        notes.append(Ended(token, request.due))
            frames.append(frame)
            size += len(frame)
        if size:
            try:
                segment, offset = self.log.append(b"".join(frames))
            finally:
                # An open file takes it still when the directory is gone.
                self._check_directory()
            for note in notes:
                self.ids.note(segment, note)
            start = position_in(segment, offset)
            for place, answer in enumerate(answers):
                if isinstance(answer, Stored) and not answer.repeated:
                    answers[place] = Stored(answer.token, start + answer.position)
        return answers

    def seal(self) -> int:
        """End the current segment of the log. Returns the last segment that can be spread."""
        return self.log.seal()

    # The thread that moves messages on. After an OSError it can do the same again.

    def spread(self, through: int, now: int) -> None:
        """Move what is due later from the log to the slot files, up to the segment `through`."""
        with self._never_again():
            self._mover.move(through, now)

    def spread_soon(self, through: int, before: int) -> None:
        """Move what is in slots below `before` ahead of the rest. See `Mover.move_soon`."""
        with self._never_again():
            self._mover.move_soon(through, before)

    def remove_segments(self, end: int) -> None:
        """Remove the segments below `end`. They were spread, and all that was due soon has ended."""
        with self._never_again():
            for number in range(self.oldest, end):
                self.log.remove(number)
            self.oldest = end

    def remove_slot(self, slot: int) -> None:
        """Remove the file of a slot whose messages have ended."""
        with self._never_again():
            self.slots.remove(slot)

    def set_aside(self, message: Message, reason: str) -> None:
        """Add a message to the dead letters. It is on the disk after that."""
        with self._never_again():
            self._dead_letters.add(message, reason)

    @contextmanager
    def _never_again(self) -> Iterator[None]:
        """After a failed sync, raise StoreFailed. A second sync may succeed though the data is lost.

        Raise it as well when the directory is gone.
        """
        if self._failure is not None:
            raise StoreFailed(f"an earlier sync failed: {self._failure}") from self._failure
        try:
            self._check_directory()
            yield
        except StoreFailed as error:
            self._failure = error
            raise

    def _check_directory(self) -> None:
        """Raise StoreFailed if the directory was removed or renamed, or another one is in its place.

        Its files look empty or missing then, and what is written to an open file is lost with it.
        """
        if not self._disk.holds(self._lock, self.path / "lock"):
            raise StoreFailed(f"{self.path} was removed, renamed or replaced while it was open")

    # The threads that read

    def take_index(self) -> Index:
        """What the log had of what is due soon when the store was opened. It can be called once."""
        index, self._in_log = self._in_log, Index()
        return index

    def index(self, slot: int) -> Index:
        """Find the messages of a slot file. What is damaged in it is logged, and lost."""
        found = self.slots.find(slot)
        for damage in found.damaged:
            self._report(f"the file of slot {slot}", damage)
        return Index([found])

    def slots_in_log(self, through: int) -> set[int]:
        """The slots whose files lack something that the segments up to `through` have."""
        return self._mover.slots_in_log(through)

    def read(self, locations: Iterable[Location]) -> list[Message | OSError | None]:
        """The messages at these locations. It stops behind 8 MiB of payloads.

        None stands for a damaged message, and an OSError for one that cannot be read now. Both are logged.
        """
        messages: list[Message | OSError | None] = []
        size = 0
        with Reader(self.log, self.slots, self._salt) as reader:
            for due, position, _ in locations:
                message: Message | OSError | None
                try:
                    message = reader.read(due, position)
                except OSError as error:
                    logger.error("%s: a message due at %d cannot be read: %s", self.path, due, error)
                    message = error
                if message is None:
                    self._check_directory()
                    logger.error("%s: a message due at %d was lost: its frame is damaged", self.path, due)
                messages.append(message)
                if isinstance(message, Message):
                    size += len(message.payload)
                    if size > _READ:
                        break
        return messages

    def pending(self) -> Iterator[list[Message]]:
        """All messages that are still to come, some at a time. See `Pending`. Raises OSError."""
        return Pending(self.log, self.slots, self._salt, self._report).messages(self._mover.checkpoint)

    def dead_letters(self) -> Iterator[DeadLetter]:
        """The messages that were set aside, the oldest first. Raises OSError."""
        return self._dead_letters.read()

    def _report(self, what: str, damage: Damage) -> None:
        """Log what is damaged. The same bytes are read several times, and are logged once."""
        if (what, damage) not in self._reported:
            self._reported.add((what, damage))
            size = damage.end - damage.offset
            logger.error("%s: %s: %d bytes from byte %d are damaged", self.path, what, size, damage.offset)

    # Opening

    def _read_salt(self, slot_ms: int) -> int:
        """The salt of the store. A new store gets one."""
        format = read_format(self._disk, self.path)
        if format is None:
            if any(self._disk.names(self.path / name) for name in ("wal", "slots")):
                raise ValueError(f"{self.path / 'format'} is missing: {RESTORE}")
            format = Format(slot_ms, secrets.randbits(32))
            # The format comes last: where it is, the checkpoint is, too.
            write_checkpoint(self._disk, self.path, Checkpoint())
            write_format(self._disk, self.path, format)
        elif format.slot_ms != slot_ms:
            made = format.slot_ms / 1000
            raise ValueError(f"{self.path} was made with slot={made}, not {slot_ms / 1000}: use slot={made}")
        return format.salt

    def _recover(self, now: int) -> None:
        """Learn what the log has, and start a new segment. What is due later is spread by the next `spread`.

        A long log moves to the slot files as a whole instead. So does a log with messages that are not due
        soon any more, because the clock was wrong. Otherwise each opening would read it again.
        """
        spread, emptied = self._mover.checkpoint
        numbers = self.log.numbers()
        self.log.go_on_behind(max([spread, *numbers]))
        self.log.remove_left_over()
        for number in numbers:
            if number <= emptied:
                self.log.remove(number)
        numbers = [number for number in numbers if number > emptied]
        for number in numbers:
            if not self.log.size(number):
                logger.warning(
                    "%s: segment %d of the log is empty: a crash came before its first message was stored, "
                    "or its messages are lost",
                    self.path,
                    number,
                )
        # A move to the slot files that a crash has ended must be finished: see `Mover.move_all`.
        moving = bool(numbers) and spread > numbers[-1]
        index = None
        if not moving and sum(map(self.log.size, numbers)) <= _LONG:
            index = self._index_log(numbers, now)
        if index is None:
            self._mover.move_all(numbers, now)
            index, numbers = Index(), []
        self._in_log = index
        self.oldest = min(numbers, default=self.checkpoint + 1)

    def _index_log(self, numbers: Sequence[int], now: int) -> Index | None:
        """Find what is due soon in these segments; None if there is a message that is not.

        The ids of segments that are not spread are remembered, as after a commit.
        """
        contents: defaultdict[int, Found] = defaultdict(Found)
        last = schedule.last_soon(now, self.slots.slot_ms)
        if numbers:
            self.log.rewrite(numbers[-1])
        for number in numbers:
            spread = number <= self.checkpoint
            for frame in self._mover.frames(number):
                if frame.kind == SOON:
                    if frame.due > last:
                        return None
                    contents[self.slots.slot_of(frame.due)].add(frame, position_in(number, frame.offset))
                elif frame.kind in ENDS and (slot := self.slots.slot_of(frame.due)) in contents:
                    contents[slot].end(frame)
                if not spread and (record := record_of(frame)) is not None:
                    self.ids.note(number, record)
        return Index(contents.values())
