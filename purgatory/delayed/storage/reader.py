"""Reads messages where they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Final

from purgatory.delayed.message import Location, Message
from purgatory.delayed.storage.disk import File
from purgatory.delayed.storage.frames import parse_body, read_frame
from purgatory.delayed.storage.index import home_of, offset_of
from purgatory.delayed.storage.log import Log
from purgatory.delayed.storage.slots import SlotFiles

# Files that are open at a time. A process may often open 1,024 in all.
_OPEN: Final = 16


def read_messages(
    log: Log, slots: SlotFiles, locations: Iterable[Location]
) -> Iterator[tuple[Location, Message | OSError | None]]:
    """The messages at these locations.

    None stands for a message that is damaged, or whose file has gone. An OSError stands for a message that
    cannot be read now.
    """
    # By segment of the log and slot, of which one is 0.
    files: dict[tuple[int, int], File | None] = {}
    with ExitStack() as stack:
        for location in locations:
            due, position, _ = location
            home = home_of(position)
            slot = 0 if home else slots.slot_of(due)
            try:
                if (home, slot) not in files:
                    if len(files) == _OPEN:
                        stack.close()
                        files.clear()
                    file = log.open(home) if home else slots.open(slot)
                    files[home, slot] = None if file is None else stack.enter_context(file)
                file = files[home, slot]
                frame = None if file is None else read_frame(log.salt, file.read, offset_of(position))
            except OSError as error:
                yield location, error
                continue
            yield (
                location,
                frame and Message(frame.token, frame.due, *parse_body(frame.body), position),
            )
