"""Which files are removed, and when."""

from __future__ import annotations

import asyncio
from collections import Counter
from unittest.mock import Mock, create_autospec

from purgatory.delayed.file_lifetimes import FileLifetimes
from purgatory.delayed.message import Location
from purgatory.delayed.storage.index import position_in
from purgatory.delayed.storage.store import Store
from purgatory.delayed.threads import Threads

SLOT = 7
IN_THE_SLOT = Location(1_000, 1, 1)


def lifetimes() -> tuple[FileLifetimes, Mock]:
    store = create_autospec(
        Store, instance=True, log=Mock(), mover=Mock(), slots=Mock(), segments=Counter({2: 1})
    )
    store.mover.checkpoint.spread = 3
    store.slots.slot_of.return_value = SLOT
    threads = create_autospec(Threads, instance=True, store=store)
    threads.move.side_effect = lambda *_: asyncio.sleep(0)
    return FileLifetimes(threads), threads


async def test_a_slot_is_removed_when_its_last_message_has_ended() -> None:
    files, threads = lifetimes()
    files.add_slot(SLOT, 2)
    files.ended(IN_THE_SLOT)
    await files.remove_slots()
    threads.move.assert_not_called()
    files.ended(IN_THE_SLOT)
    await files.remove_slots()
    threads.move.assert_called_once_with(threads.store.slots.remove, SLOT)
    assert not files.has_slot(SLOT)


async def test_a_segment_is_needed_until_its_last_message_has_ended() -> None:
    files, threads = lifetimes()
    files.add_message(5)
    await files.remove_segments()
    threads.move.assert_called_with(threads.store.log.remove_oldest, 3, {2: 1, 5: 1})
    files.ended(Location(1_000, position_in(2, 0), 1))
    await files.remove_segments()
    threads.move.assert_called_with(threads.store.log.remove_oldest, 3, {5: 1})
