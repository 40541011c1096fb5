"""What the slot files and the ids get from the log."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator

from purgatory.delayed.storage.frames import CANCELLED, ENDS, Frame, parse_body, token_of, unhurried
from purgatory.delayed.storage.ids import Ended, Taken, digest
from purgatory.delayed.storage.slots import SlotFiles


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
        if self._ended and self._messages:
            # A slot that is delivered gets half a million notes in a block.
            ended = set(unhurried(self._ended))
            self._messages = [data for data in self._messages if token_of(data) not in ended]
        return bool(self._messages)

    def __iter__(self) -> Iterator[bytes | bytearray]:
        yield from self._messages
        yield self._ends


class Blocks:
    """The blocks from some segments of the log, by slot."""

    def __init__(self, slots: SlotFiles) -> None:
        self._slots = slots
        self._by_slot: defaultdict[int, Block] = defaultdict(Block)
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
        """Take along that a message has ended, if the slot needs to know."""
        slot = self._slots.slot_of(frame.due)
        if slot in self._by_slot or (slot not in self._gone and self._slots.exists(slot)):
            self._by_slot[slot].end(frame)
        else:
            # The message was in the log, or its slot is over.
            self._gone.add(slot)


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
