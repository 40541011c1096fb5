"""Reads messages where they are."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

from purgatory.delayed.message import Message
from purgatory.delayed.storage.disk import File
from purgatory.delayed.storage.frames import parse_body, read_frame
from purgatory.delayed.storage.index import home_of, offset_of
from purgatory.delayed.storage.log import Log
from purgatory.delayed.storage.slots import SlotFiles

# Files that are open at a time. A process may often open 1,024 in all.
_OPEN: Final = 16


class Reader:
    """Reads messages in a ``with`` block, which keeps some files open."""

    def __init__(self, log: Log, slots: SlotFiles, salt: int) -> None:
        self._log = log
        self._slots = slots
        self._salt = salt
        # By segment of the log and slot, of which one is 0.
        self._files: dict[tuple[int, int], File | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()

    def read(self, due: int, position: int) -> Message | None:
        """A message; None if it is damaged, or its file has gone. Raises OSError."""
        home = home_of(position)
        slot = 0 if home else self._slots.slot_of(due)
        if (home, slot) not in self._files:
            if len(self._files) == _OPEN:
                self._close()
            self._files[home, slot] = self._log.open(home) if home else self._slots.open(slot)
        file = self._files[home, slot]
        if file is None:
            return None
        frame = read_frame(self._salt, file.read, offset_of(position))
        return frame and Message(frame.token, frame.due, *parse_body(frame.body), position)

    def _close(self) -> None:
        for file in self._files.values():
            if file is not None:
                file.close()
        self._files.clear()
