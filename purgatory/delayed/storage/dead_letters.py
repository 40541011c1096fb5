"""Messages that could not be delivered, set aside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from purgatory.delayed.message import Message
from purgatory.delayed.storage.disk import Disk
from purgatory.delayed.storage.frames import DEAD, MAX_REASON, Frame, encode, message_body, parse_body, scan


class DeadLetter(NamedTuple):
    """A message, and why its last delivery failed. `due` is in seconds since the epoch."""

    id: str
    due: float
    payload: bytes
    reason: str


class DeadLetters:
    """The file ``dead-letters``, which only grows. Delete it when its messages have been dealt with."""

    def __init__(self, disk: Disk, path: Path, salt: int) -> None:
        self._disk = disk
        self._path = path
        self._salt = salt

    def add(self, message: Message, reason: str) -> None:
        """Set a message aside. It is on the disk after that, which takes a sync. Raises OSError."""
        # A letter looks like a message whose id is the reason, and whose payload is the other message.
        text = reason.encode(errors="replace")[:MAX_REASON].decode(errors="ignore")
        body = message_body(text, message_body(message.name, message.payload))
        with closing(self._disk.open(self._path)) as file:
            if not file.size:
                # Its name comes first: once there is a letter in the file, the name is on the disk.
                self._disk.sync_directory(self._path.parent)
            file.append(encode(self._salt, DEAD, message.due, message.token, body))
            file.sync()

    def read(self) -> Iterator[DeadLetter]:
        """The messages, in the order in which they were set aside."""
        file = self._disk.open_existing(self._path)
        if file is None:
            return
        with closing(file):
            for frame in scan(self._salt, file.read):
                if isinstance(frame, Frame):
                    reason, body = parse_body(frame.body)
                    message = Message(frame.token, frame.due, *parse_body(body))
                    yield DeadLetter(message.id, message.due / 1000, message.payload, reason or "")
