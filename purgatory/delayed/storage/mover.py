"""Moves messages from the log to the slot files."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from purgatory.delayed import schedule
from purgatory.delayed.storage.checkpoint import Checkpoint
from purgatory.delayed.storage.disk import Disk
from purgatory.delayed.storage.frames import ENDS, LATER, SOON, Damage, Frame, Kind, token_of, unhurried
from purgatory.delayed.storage.ids import IdRecord, Ids, record_of
from purgatory.delayed.storage.log import Log
from purgatory.delayed.storage.slots import SlotFiles


@dataclass(slots=True)
class _Block:
    """The frames that one slot file gets, as they are in the log. It takes 40 bytes more for each message."""

    messages: list[bytes] = field(default_factory=list)
    ends: bytearray = field(default_factory=bytearray)
    ended: array[int] = field(default_factory=lambda: array("Q"))


class _Blocks:
    def __init__(self, slots: SlotFiles) -> None:
        self._slots = slots
        self._by_slot: defaultdict[int, _Block] = defaultdict(_Block)
        # Slots without a file.
        self._gone: set[int] = set()

    def add(self, frame: Frame) -> None:
        self._by_slot[self._slots.slot_of(frame.due)].messages.append(frame.data)

    def end(self, frame: Frame) -> None:
        """Take along that a message has ended, if the slot needs to know."""
        slot = self._slots.slot_of(frame.due)
        if slot in self._by_slot or (slot not in self._gone and self._slots.exists(slot)):
            self._by_slot[slot].ended.append(frame.token)
            self._by_slot[slot].ends += frame.data
        else:
            # The message was in the log, or its slot is over.
            self._gone.add(slot)

    def of(self, slots: range) -> dict[int, list[bytes | bytearray]]:
        """What these slot files get. No slot gets a file for messages that have ended in the same block."""
        written: dict[int, list[bytes | bytearray]] = {}
        for slot, block in self._by_slot.items():
            if slot in slots:
                # A slot that is delivered gets half a million notes in a block, and no message.
                ended = set(unhurried(block.ended)) if block.messages else set()
                messages = [data for data in block.messages if token_of(data) not in ended]
                if messages or self._slots.exists(slot):
                    written[slot] = [*messages, block.ends]
        return written


@dataclass(eq=False, repr=False)
class Mover:
    """Writes what is due later to the slot files, with the records of ids, and then the checkpoint.

    After an OSError, and after a crash at any point, it can be repeated: a block takes the place of the part
    that was written before. `report` gets what is damaged in the log.
    """

    disk: Disk
    path: Path
    log: Log
    slots: SlotFiles
    report: Callable[[str, Damage], None]

    def __post_init__(self) -> None:
        self.ids = Ids(self.disk, self.path / "ids")
        self.checkpoint = Checkpoint.read(self.disk, self.path)
        # The last segment of the last `move_soon`, and the first slot that it has not written.
        self._ahead = (0, 0)

    def move(self, through: int, now: int) -> None:
        """Move what is due later, and what has ended, up to the segment `through`."""
        for number in range(self.checkpoint.spread + 1, through + 1):
            self._write(number, *self._read(number, LATER), now)
            self._set_checkpoint(number, self.checkpoint.emptied)
            self.ids.spread(number)

    def move_soon(self, through: int, before: int) -> None:
        """Move what is in slots below `before` ahead of the rest, up to the segment `through`.

        Then `move` moves the rest, and does not touch the files of these slots: they may be read, and
        removed, meanwhile. If it fails, nothing has changed for `move`.
        """
        for number in range(self.checkpoint.spread + 1, through + 1):
            blocks, _ = self._read(number, LATER)
            with self.disk.appending() as append:
                # `move` will use the same numbers.
                self.slots.write(number, number - 1, blocks.of(range(before)), append)
        self._ahead = (through, before)

    def move_all(self, numbers: Sequence[int], now: int) -> None:
        """Move everything from these segments to the slot files, also what is due soon, and remove them.

        A crash leaves the rest of the log. The next attempt writes the same block with the same number again,
        which takes the place of what this one has written. So it must be known that a move has begun: then
        the checkpoint is after the last segment.
        """
        self.move(numbers[-1], now)
        if self.checkpoint.spread == numbers[-1]:
            self._set_checkpoint(self.checkpoint.spread + 1, self.checkpoint.emptied)
        for segment in numbers:
            blocks, _ = self._read(segment, SOON)
            number = self.checkpoint.spread + 1
            self._write(number, blocks, (), now)
            self._set_checkpoint(number, segment)
            self.log.remove_oldest(segment, needed=())

    def slots_in_log(self, through: int) -> set[int]:
        """The slots whose files lack something that the segments up to `through` have."""
        return {
            slot
            for number in range(self.checkpoint.spread + 1, through + 1)
            for frame in self.frames(number)
            if frame.kind == LATER or frame.kind in ENDS
            if (slot := self.slots.slot_of(frame.due)) in self._slots_of(number)
        }

    def frames(self, number: int) -> Iterator[Frame]:
        """The frames of a segment. What is damaged is reported."""
        for frame in self.log.read(number):
            if isinstance(frame, Damage):
                self.report(f"segment {number} of the log", frame)
            else:
                yield frame

    def _read(self, number: int, kind: Kind) -> tuple[_Blocks, list[IdRecord]]:
        """What a segment has for the slot files: messages of a kind, and ends. And records of ids."""
        blocks = _Blocks(self.slots)
        records: list[IdRecord] = []
        for frame in self.frames(number):
            if frame.kind == kind:
                blocks.add(frame)
            elif frame.kind in ENDS:
                blocks.end(frame)
            if (record := record_of(frame)) is not None:
                records.append(record)
        return blocks, records

    def _write(self, number: int, blocks: _Blocks, records: Iterable[IdRecord], now: int) -> None:
        """Write a block (checkpoint, number] to the slot files, and the records of ids."""
        oldest = min(self.log.numbers(), default=number)

        def over(due: int, segment: int) -> bool:
            # The clock alone does not say it: it may be wrong, and the store may have been closed for days.
            late = due < now - schedule.DAY and segment < oldest
            return late and not self.slots.exists(self.slots.slot_of(due))

        by_slot = blocks.of(self._slots_of(number))
        with self.disk.appending() as append:
            self.slots.write(number, self.checkpoint.spread, by_slot, append)
            self.ids.add(records, number, over, append)

    def _slots_of(self, number: int) -> range:
        """The slots that `move` writes from a segment: all but the slots that `move_soon` has written."""
        through, before = self._ahead
        return range(before if number <= through else 0, schedule.END)

    def _set_checkpoint(self, spread: int, emptied: int) -> None:
        checkpoint = Checkpoint(spread, emptied)
        checkpoint.write(self.disk, self.path)
        self.checkpoint = checkpoint
