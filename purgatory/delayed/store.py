"""What is on the disk: the log, the slot files, the ids, and the checkpoint between them."""

from __future__ import annotations

import logging
import secrets
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from purgatory.delayed.appends import Appends
from purgatory.delayed.blocks import Blocks, record_of
from purgatory.delayed.dead_letters import DeadLetter, DeadLetters
from purgatory.delayed.disk import Disk, File
from purgatory.delayed.errors import IdTaken, StoreFailed, StoreLocked
from purgatory.delayed.frame import (
    CANCELLED,
    ENDS,
    LATER,
    SOON,
    Damage,
    Frame,
    encode,
    end_body,
    message_body,
    parse_body,
    read_frame,
)
from purgatory.delayed.ids import Ended, Ids, Taken, bucket_of, digest
from purgatory.delayed.layout import (
    RESTORE,
    Checkpoint,
    Format,
    read_checkpoint,
    read_format,
    write_checkpoint,
    write_format,
)
from purgatory.delayed.log import OFFSET_BITS, Log, home_of, position_in, segment_numbers
from purgatory.delayed.log_index import LogIndex
from purgatory.delayed.message import Location, Message
from purgatory.delayed.pending import Pending
from purgatory.delayed.requests import Answer, Find, Put, Request, Stored
from purgatory.delayed.schedule import DAY, END, last_soon
from purgatory.delayed.slot_files import SlotFiles, SlotIndex

# Bytes of messages that are read at a time.
_READ: Final = 1 << 23
# Files of a read that are open at a time. A process may often open 1,024 in all.
_OPEN: Final = 16
# Bytes of a token.
_TOKEN: Final = 8
# Bytes of the log from which on it is moved as a whole when the store is opened, and bytes of a piece of it.
_LONG: Final = 1 << 27
_RECOVERED: Final = 1 << 25

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
        self._in_log = LogIndex()
        # What was damaged so far.
        self._reported: set[tuple[str, Damage]] = set()
        # The last segment of the last `spread_soon`, and the slot behind those that it has written.
        self._ahead = (0, 0)
        # Why the thread that moves messages on cannot go on.
        self._failure: StoreFailed | None = None
        try:
            self._salt = self._format(slot_ms)
            for name in ("wal", "slots", "ids"):
                disk.make_directory(path / name)
            self.slots = SlotFiles(disk, path / "slots", self._salt, slot_ms)
            self.ids = Ids(disk, path / "ids")
            self._dead_letters = DeadLetters(disk, path / "dead-letters", self._salt)
            # The last segment that was spread, and the last one that holds no message any more.
            self.checkpoint, self._emptied = read_checkpoint(disk, path)
            self._recover(now)
        except BaseException:
            disk.unlock(self._lock)
            raise

    def close(self) -> None:
        """Close the files, and unlock the directory. The other threads must have ended."""
        try:
            self.log.seal()
        finally:
            self._disk.unlock(self._lock)

    # The thread that writes

    def commit(self, requests: Sequence[Request]) -> list[Answer]:
        """Write the requests to the log with one sync, and answer each.

        The answer to a Put with a taken id is IdTaken, or the earlier message if it is the same. The answer
        to an End is whether the message had not ended before. The answer to a Find is the message that is
        still to come, or None. Raises OSError if the disk is full, for
        example: then nothing of it was written. Raises StoreFailed when nobody knows what was written.
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
        for request in requests:
            frame = b""
            if isinstance(request, Put):
                token = next(tokens)
                name = request.name
                if name is not None:
                    hashed = digest(name.encode())
                    earlier = taken.get(name) or self.ids.taken(name)
                    content = digest(request.payload)
                    if earlier is not None and earlier.token not in ended:
                        if earlier.due == request.due and earlier.digest == content:
                            answers.append(Stored(earlier.token, 0, repeated=True))
                            continue
                        if earlier.token not in request.delivering:
                            answers.append(
                                IdTaken(f"the id {name!r} belongs to another message that is still to come")
                            )
                            continue
                    token = token - bucket_of(token) + bucket_of(hashed)
                    taken[name] = Taken(token, request.due, hashed, content)
                    notes.append(taken[name])
                body = message_body(name, request.payload)
                frame = encode(self._salt, SOON if request.soon else LATER, request.due, token, body)
                answers.append(Stored(token, size))
            elif isinstance(request, Find):
                found = taken.get(request.name) or self.ids.taken(request.name)
                answers.append(None if found is None or found.token in ended else found)
            else:
                token = request.token
                fresh = not request.check or not (token in ended or self.ids.ended(token))
                answers.append(fresh)
                ended.add(token)
                if fresh:
                    frame = encode(self._salt, request.kind, request.due, token, end_body(request.named))
                    if request.named or request.kind is CANCELLED:
                        notes.append(Ended(request.token, request.due))
            frames.append(frame)
            size += len(frame)
        if size:
            try:
                segment, offset = self.log.append(b"".join(frames))
            finally:
                # Where the directory is gone, the open file still takes it.
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

    # The thread that moves messages on

    def spread(self, through: int, now: int) -> None:
        """Move what is due later from the log to the slot files, up to the segment `through`.

        Raises OSError; then it can be repeated.
        """
        with self._never_again():
            for number in range(self.checkpoint + 1, through + 1):
                self._spread([number], now)

    def spread_soon(self, through: int, before: int) -> None:
        """Move what is in slots below `before` ahead of the rest, up to the segment `through`.

        Then `spread` moves the rest, and does not touch the files of these slots: they may be read, and
        removed, meanwhile. Raises OSError; then nothing has changed for `spread`.
        """
        with self._never_again():
            for number in range(self.checkpoint + 1, through + 1):
                by_slot = self._blocks([number]).by_slot(range(before))
                with Appends(self._disk) as appends:
                    # `spread` will use the same numbers.
                    self.slots.write(number, number - 1, by_slot, appends)
            self._ahead = (through, before)

    def remove_segments(self, first: int, end: int) -> int:
        """Remove the oldest segments, below `end`. They were spread, and all that was due soon has ended.

        Returns `end`. Raises OSError; then it can be repeated.
        """
        with self._never_again():
            for number in range(first, end):
                self.log.remove(number)
        return end

    def remove_slot(self, slot: int) -> None:
        """Remove the file of a slot whose messages have ended."""
        with self._never_again():
            self.slots.remove(slot)

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

    def set_aside(self, message: Message, reason: str) -> None:
        """Add a message to the dead letters. It is on the disk after that. Raises OSError."""
        with self._never_again():
            self._dead_letters.add(message, reason)

    def _check_directory(self) -> None:
        """Raise StoreFailed if the directory was removed or renamed, or another one is in its place.

        Its files look empty or missing then, and what is written to an open file is lost with it.
        """
        if not self._disk.holds(self._lock, self.path / "lock"):
            raise StoreFailed(f"{self.path} was removed, renamed or replaced while it was open")

    def _move(self, number: int, blocks: Blocks, now: int) -> None:
        """Write a block (checkpoint, number] to the slot files, and the records of ids."""
        oldest = min(segment_numbers(self._disk, self.path / "wal"), default=number)

        def over(due: int, segment: int) -> bool:
            # The clock alone does not say it: it may be wrong, and the store may have been closed for days.
            late = due < now - DAY and segment < oldest
            return late and not self.slots.exists(self.slots.slot_of(due))

        by_slot = blocks.by_slot(self._slots_of(number))
        with Appends(self._disk) as appends:
            self.slots.write(number, self.checkpoint, by_slot, appends)
            self.ids.add(blocks.records, number, over, appends)

    # The threads that read

    def take_index(self) -> LogIndex:
        """What the log had of what is due soon when the store was opened. It can be called once."""
        index, self._in_log = self._in_log, LogIndex()
        return index

    def dead_letters(self) -> Iterator[DeadLetter]:
        """The messages that were set aside, the oldest first. Raises OSError."""
        return self._dead_letters.read()

    def pending(self) -> Iterator[list[Message]]:
        """All messages that are still to come, some at a time. See `Pending`.

        Raises OSError.
        """
        pending = Pending(
            self._disk,
            self.path,
            self._salt,
            self.slots,
            self._report,
        )
        return pending.messages(Checkpoint(self.checkpoint, self._emptied))

    def slots_in_log(self, through: int) -> set[int]:
        """The slots whose files lack something that the segments up to `through` have."""
        return {
            slot
            for number in range(self.checkpoint + 1, through + 1)
            for frame in self._frames(number)
            if frame.kind == LATER or frame.kind in ENDS
            if (slot := self.slots.slot_of(frame.due)) in self._slots_of(number)
        }

    def index(self, slot: int) -> SlotIndex:
        """Find the messages of a slot file. What is damaged in it is logged, and lost."""
        index = self.slots.index(slot)
        for damage in index.damaged:
            self._report(f"the file of slot {slot}", damage)
        return index

    def read(self, locations: Iterable[Location]) -> list[Message | OSError | None]:
        """The messages at these locations.

        None stands for a damaged one, and an OSError for one that cannot be read now. Both are logged. It
        stops behind 8 MiB of payloads.
        """
        files: dict[tuple[int, int], File | None] = {}
        messages: list[Message | OSError | None] = []
        size = 0
        try:
            for due, position, _ in locations:
                home = home_of(position)
                offset = position & (1 << OFFSET_BITS) - 1 if home else position
                slot = 0 if home else self.slots.slot_of(due)
                try:
                    if (home, slot) not in files:
                        if len(files) == _OPEN:
                            _close(files)
                        files[home, slot] = self.log.open(home) if home else self.slots.open(slot)
                    file = files[home, slot]
                    frame = None if file is None else read_frame(self._salt, file.read, offset)
                except OSError as error:
                    logger.error("%s: a message due at %d cannot be read: %s", self.path, due, error)
                    messages.append(error)
                    continue
                if frame is None:
                    self._check_directory()
                    logger.error("%s: a message due at %d was lost: its frame is damaged", self.path, due)
                    messages.append(None)
                else:
                    messages.append(Message(frame.token, frame.due, *parse_body(frame.body), position))
                    size += len(frame.body)
                    if size > _READ:
                        break
        finally:
            _close(files)
        return messages

    # Opening

    def _format(self, slot_ms: int) -> int:
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

    def _write_checkpoint(self, spread: int, emptied: int) -> None:
        write_checkpoint(self._disk, self.path, Checkpoint(spread, emptied))
        self.checkpoint, self._emptied = spread, emptied

    def _recover(self, now: int) -> None:
        """Learn what the log has, and start a new segment. What is due later is spread by the next `spread`.

        A long log moves to the slot files as a whole instead, and so does one with messages that are not due
        soon any more, because the clock was wrong. Otherwise it would stay, and each opening would read it.
        """
        directory = self.path / "wal"
        numbers = segment_numbers(self._disk, directory)
        self.log = Log(self._disk, directory, self._salt, max([self.checkpoint, *numbers]) + 1)
        self.log.remove_left_over()
        for number in numbers:
            if number <= self._emptied:
                self.log.remove(number)
        numbers = [number for number in numbers if number > self._emptied]
        for number in numbers:
            if not self.log.size(number):
                logger.warning(
                    "%s: segment %d of the log is empty: a crash came before its first message was stored, "
                    "or its messages are lost",
                    self.path,
                    number,
                )
        # A move to the slot files that a crash has ended must be finished: see `_move_all`.
        moving = bool(numbers) and self.checkpoint > numbers[-1]
        index = None
        if not moving and sum(map(self.log.size, numbers)) <= _LONG:
            index = self._index_log(numbers, now)
        if index is None:
            self._move_all(numbers, now)
            numbers = []
        else:
            self._in_log = index
        # The oldest segment that there is, or will be.
        self.oldest = min(numbers, default=self.checkpoint + 1)

    def _index_log(self, numbers: Sequence[int], now: int) -> LogIndex | None:
        """Find what is due soon in these segments; None if there is a message that is not.

        The ids of segments that are not spread are remembered, as after a commit.
        """
        index = LogIndex()
        last = last_soon(now, self.slots.slot_ms)
        if numbers:
            self.log.rewrite(numbers[-1])
        for number in numbers:
            spread = number <= self.checkpoint
            for frame in self._frames(number):
                if frame.kind == SOON:
                    if frame.due > last:
                        return None
                    index.add(frame, position_in(number, frame.offset))
                elif frame.kind in ENDS:
                    index.end(frame)
                if not spread and (record := record_of(frame)) is not None:
                    self.ids.note(number, record)
        index.settle()
        return index

    def _move_all(self, numbers: Sequence[int], now: int) -> None:
        """Move everything from the log to the slot files, also what is due soon.

        Some segments at a time are in memory. A crash leaves the rest of the log. The next attempt writes
        the same block with the same number again, which takes the place of what this one has written. So
        it must be known that a move has begun: then the checkpoint is behind the last segment.
        """
        for some in self._some_at_a_time(self.checkpoint, numbers):
            self._spread(some, now)
        if self.checkpoint == numbers[-1]:
            self._write_checkpoint(self.checkpoint + 1, self._emptied)
        for some in self._some_at_a_time(self._emptied, numbers):
            self._empty(some, now)
        # The blocks that have emptied the log have numbers behind those of its segments.
        self.log.go_on_behind(self.checkpoint)

    def _some_at_a_time(self, after: int, numbers: Iterable[int]) -> Iterator[list[int]]:
        """The segments behind `after`, some 32 MiB of them at a time."""
        some: list[int] = []
        size = 0
        for number in numbers:
            if number > after:
                some.append(number)
                size += self.log.size(number)
                if size >= _RECOVERED:
                    yield some
                    some, size = [], 0
        if some:
            yield some

    def _spread(self, numbers: Sequence[int], now: int) -> None:
        """Write what is due later, and what has ended, from the next segments to the slot files."""
        self._move(numbers[-1], self._blocks(numbers), now)
        self._write_checkpoint(numbers[-1], self._emptied)
        for number in numbers:
            self.ids.spread(number)

    def _blocks(self, numbers: Sequence[int]) -> Blocks:
        """What these segments have for the slot files, and for the ids."""
        blocks = Blocks(self.slots)
        for number in numbers:
            for frame in self._frames(number):
                if frame.kind == LATER:
                    blocks.add(frame)
                elif frame.kind in ENDS:
                    blocks.end(frame)
                if (record := record_of(frame)) is not None:
                    blocks.records.append(record)
        return blocks

    def _slots_of(self, number: int) -> range:
        """The slots that `spread` writes from a segment: all but those that `spread_soon` has written."""
        through, before = self._ahead
        return range(before if number <= through else 0, END)

    def _empty(self, numbers: Sequence[int], now: int) -> None:
        """Write what is due soon, and what has ended, from the oldest segments to the slot files."""
        blocks = Blocks(self.slots)
        for number in numbers:
            for frame in self._frames(number):
                if frame.kind == SOON:
                    blocks.add(frame)
                elif frame.kind in ENDS:
                    blocks.end(frame)
        self._move(self.checkpoint + 1, blocks, now)
        self._write_checkpoint(self.checkpoint + 1, numbers[-1])
        for number in numbers:
            self.log.remove(number)

    def _frames(self, number: int) -> Iterator[Frame]:
        for frame in self.log.read(number):
            if isinstance(frame, Damage):
                self._report(f"segment {number} of the log", frame)
            else:
                yield frame

    def _report(self, what: str, damage: Damage) -> None:
        """Log what is damaged. The same bytes are read several times, and are logged once."""
        if (what, damage) in self._reported:
            return
        self._reported.add((what, damage))
        size = damage.end - damage.offset
        logger.error("%s: %s: %d bytes from byte %d are damaged", self.path, what, size, damage.offset)


def _close(files: dict[tuple[int, int], File | None]) -> None:
    for file in files.values():
        if file is not None:
            file.close()
    files.clear()
