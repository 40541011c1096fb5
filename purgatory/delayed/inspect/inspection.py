"""What is in the directory of a store, found without changing or locking it."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from purgatory.delayed import schedule
from purgatory.delayed.storage.agenda import home_of
from purgatory.delayed.storage.checkpoint import Checkpoint, Format
from purgatory.delayed.storage.dead_letters import DeadLetter, DeadLetters
from purgatory.delayed.storage.disk import Disk
from purgatory.delayed.storage.frames import Damage
from purgatory.delayed.storage.log import Log
from purgatory.delayed.storage.pending import Pending, Progress
from purgatory.delayed.storage.slots import SlotFiles


@dataclass(slots=True)
class Amount:
    """Messages, and the bytes of their payloads and ids."""

    messages: int = 0
    bytes: int = 0

    def add(self, length: int) -> None:
        self.messages += 1
        self.bytes += length


@dataclass(frozen=True, slots=True)
class Inspection:
    """What is pending, and what the directory consists of.

    `hours` counts the messages of each hour since the epoch, in order. Some are only `in_log`.
    `slot` is the length of a slot in seconds. `damaged` says what cannot be read, and is lost.
    """

    slot: float
    hours: dict[int, Amount]
    in_log: Amount
    segments: int
    log_bytes: int
    slot_files: int
    dead_letters: int
    damaged: list[str]

    @property
    def pending(self) -> Amount:
        amounts = self.hours.values()
        return Amount(sum(hour.messages for hour in amounts), sum(hour.bytes for hour in amounts))


def inspect(path: str | os.PathLike[str], progress: Progress = lambda read, total: None) -> Inspection:
    """Find out what is pending in the directory of a store, which may be in use.

    It reads the log and every slot file. What is scheduled, cancelled or delivered meanwhile may be counted
    or not. Raises ValueError if there is no store, or a store of another version; and OSError.
    """
    store, disk = Path(path), Disk()
    format = _format(disk, store)
    damaged: list[str] = []

    def report(what: str, damage: Damage) -> None:
        damaged.append(f"{what}: {damage.end - damage.offset} bytes are damaged")

    log = Log(disk, store / "wal", format.salt)
    slot_files = SlotFiles(disk, store / "slots", format.salt, format.slot_ms)
    checkpoint = Checkpoint.read(disk, store)
    hours: defaultdict[int, Amount] = defaultdict(Amount)
    in_log = Amount()
    for due, position, _, length in Pending(log, slot_files, report, progress).places(checkpoint):
        hours[due // schedule.HOUR].add(length)
        if home_of(position):
            in_log.add(length)
    segments = [number for number in log.numbers() if number > checkpoint.emptied]
    return Inspection(
        slot=format.slot_ms / 1000,
        hours=dict(sorted(hours.items())),
        in_log=in_log,
        segments=len(segments),
        log_bytes=sum(map(log.size, segments)),
        slot_files=len(slot_files.present()),
        dead_letters=sum(1 for _ in dead_letters(store)),
        damaged=damaged,
    )


def dead_letters(path: str | os.PathLike[str]) -> Iterator[DeadLetter]:
    """The messages that were set aside, the oldest first. Raises as `inspect` does."""
    store, disk = Path(path), Disk()
    return DeadLetters(disk, store / "dead-letters", _format(disk, store).salt).read()


def _format(disk: Disk, store: Path) -> Format:
    if not store.is_dir():
        raise ValueError(f"there is no directory {store}")
    format = Format.read(disk, store)
    if format is None:
        raise ValueError(f"{store} is no directory of delayed messages: it has no file named format")
    return format
