"""Which files are removed, and when."""

from __future__ import annotations

from collections import Counter
from unittest.mock import Mock, create_autospec

from purgatory.delayed.message import Location
from purgatory.delayed.retention import Retention
from purgatory.delayed.store import Store
from purgatory.delayed.threads import Threads

SLOT = 7
IN_THE_SLOT = Location(1_000, 1, 1)


def retention(threads: Mock) -> Retention:
    store = create_autospec(Store, instance=True, checkpoint=0, oldest=1)
    store.slots = Mock()
    store.slots.slot_of.return_value = SLOT
    return Retention(store, Counter(), threads, print)


def test_a_slot_is_removed_when_its_last_message_has_ended() -> None:
    threads = create_autospec(Threads, instance=True)
    files = retention(threads)
    files.add_slot(SLOT, 2)
    files.ended(IN_THE_SLOT)
    threads.move.assert_not_called()
    files.ended(IN_THE_SLOT)
    (_, slot), _ = threads.move.call_args
    assert slot == SLOT


def test_nothing_is_removed_after_the_end() -> None:
    threads = create_autospec(Threads, instance=True)
    files = retention(threads)
    files.add_slot(SLOT, 1)
    files.close()
    files.ended(IN_THE_SLOT)
    threads.move.assert_not_called()
