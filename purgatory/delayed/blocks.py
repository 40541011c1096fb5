"""What the slot files and the ids get from the log."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import pairwise

from purgatory.delayed.frame import Frame, Kind, parse_body
from purgatory.delayed.ids import Ended, Taken, digest
from purgatory.delayed.slot_files import SlotFiles


class Block:
    """The frames that one slot file gets, as they are in the log. It takes 16 bytes more for each message."""

    __slots__ = ("_ended", "_ends", "_messages", "_starts", "_tokens")

    def __init__(self) -> None:
        self._messages = bytearray()
        self._starts = array("Q")
        self._tokens = array("Q")
        self._ends = bytearray()
        self._ended = array("Q")

    def add(self, frame: Frame) -> None:
        self._starts.append(len(self._messages))
        self._tokens.append(frame.token)
        self._messages += frame.data

    def end(self, frame: Frame) -> None:
        self._ended.append(frame.token)
        self._ends += frame.data

    def settle(self) -> bool:
        """Drop messages that have ended in the same block. Returns whether there are others."""
        if self._ended:
            ended = set(self._ended)
            places = zip(self._tokens, pairwise([*self._starts, len(self._messages)]), strict=True)
            kept = (self._messages[start:stop] for token, (start, stop) in places if token not in ended)
            self._messages = bytearray().join(kept)
        return bool(self._messages)

    def __iter__(self) -> Iterator[bytearray]:
        yield self._messages
        yield self._ends


class Blocks:
    """The blocks from some segments of the log, by slot, and the records of ids."""

    def __init__(self, slots: SlotFiles) -> None:
        self._slots = slots
        self._by_slot: dict[int, Block] = {}
        self.records: list[Taken | Ended] = []
        # Slots without a file.
        self._gone: set[int] = set()

    def by_slot(self) -> dict[int, Block]:
        """The blocks to write. No slot gets a file for messages that have ended."""
        blocks = self._by_slot.items()
        return {slot: block for slot, block in blocks if block.settle() or self._slots.exists(slot)}

    def add(self, frame: Frame) -> None:
        """Take a message along."""
        slot = self._slots.slot_of(frame.due)
        block = self._by_slot.get(slot)
        if block is None:
            block = self._by_slot[slot] = Block()
        block.add(frame)

    def end(self, frame: Frame) -> None:
        """Take along that a message was cancelled or delivered, if the slot needs to know."""
        if frame.named or frame.kind == Kind.CANCELLED:
            self.records.append(Ended(frame.token, frame.due))
        slot = self._slots.slot_of(frame.due)
        block = self._by_slot.get(slot)
        if block is None:
            if slot in self._gone or not self._slots.exists(slot):
                # The message was in the log, or its slot is over.
                self._gone.add(slot)
                return
            block = self._by_slot[slot] = Block()
        block.end(frame)

    def take(self, frame: Frame) -> None:
        """Take along the id of a message, which the user chose."""
        name, payload = parse_body(frame.body)
        assert name is not None
        self.records.append(Taken(frame.token, frame.due, digest(name.encode()), digest(payload)))
