"""What the slot files and the ids get from the log."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator
from time import sleep
from typing import Final

from purgatory.delayed.frame import CANCELLED, ENDS, PAUSE, Frame, parse_body, token_of
from purgatory.delayed.ids import Ended, Taken, digest
from purgatory.delayed.slot_files import SlotFiles

# Tokens that are put into a set at a time, which takes half a millisecond.
_TOKENS: Final = 10_000


class Block:
    """The frames that one slot file gets, as they are in the log. It takes 40 bytes more for each message."""

    __slots__ = ("_ended", "_ends", "_messages")

    def __init__(self) -> None:
        self._messages: list[bytes] = []
        self._ends = bytearray()
        self._ended = array("Q")

    def add(self, frame: Frame) -> None:
        self._messages.append(frame.data)

    def end(self, frame: Frame) -> None:
        self._ended.append(frame.token)
        self._ends += frame.data

    def settle(self) -> bool:
        """Drop messages that have ended in the same block. Returns whether there are others."""
        # A slot that is delivered gets half a million notes in a block, and no message. To make a set of them
        # at once would hold the interpreter, and with it the event loop, for 50 ms.
        if self._ended and self._messages:
            ended: set[int] = set()
            for first in range(0, len(self._ended), _TOKENS):
                ended.update(self._ended[first : first + _TOKENS])
                sleep(PAUSE)
            self._messages = [data for data in self._messages if token_of(data) not in ended]
        return bool(self._messages)

    def __iter__(self) -> Iterator[bytes | bytearray]:
        yield from self._messages
        yield self._ends


class Blocks:
    """The blocks from some segments of the log, by slot, and the records of ids."""

    def __init__(self, slots: SlotFiles) -> None:
        self._slots = slots
        self._by_slot: defaultdict[int, Block] = defaultdict(Block)
        self.records: list[Taken | Ended] = []
        # Slots without a file.
        self._gone: set[int] = set()

    def by_slot(self, slots: range) -> dict[int, Block]:
        """The blocks of these slots to write. No slot gets a file for messages that have ended."""
        return {
            slot: block
            for slot, block in self._by_slot.items()
            if slot in slots and (block.settle() or self._slots.exists(slot))
        }

    def add(self, frame: Frame) -> None:
        """Take a message along."""
        self._by_slot[self._slots.slot_of(frame.due)].add(frame)

    def end(self, frame: Frame) -> None:
        """Take along that a message was cancelled or delivered, if the slot needs to know."""
        slot = self._slots.slot_of(frame.due)
        block = self._by_slot.get(slot)
        if block is None:
            if slot in self._gone or not self._slots.exists(slot):
                # The message was in the log, or its slot is over.
                self._gone.add(slot)
                return
            block = self._by_slot[slot]
        block.end(frame)


def record_of(frame: Frame) -> Taken | Ended | None:
    """What the ids need to know of a frame of the log, if anything."""
    named = frame.named
    if frame.kind in ENDS:
        return Ended(frame.token, frame.due) if named or frame.kind == CANCELLED else None
    if not named:
        return None
    name, payload = parse_body(frame.body)
    assert name is not None
    return Taken(frame.token, frame.due, digest(name.encode()), digest(payload))
