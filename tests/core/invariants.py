"""What holds in a timing wheel and in watch lists between any two calls."""

from __future__ import annotations

from purgatory import TimerTask, TimingWheel
from purgatory._core.watch_list import CHUNK_LENGTH, Chunk, operations_at
from purgatory._core.watchers import Watchers, keys_at


def check_wheel(wheel: TimingWheel) -> None:
    """Raise AssertionError where a task is in a wrong slot, or links, bits or the count are wrong."""
    tasks = 0
    for number, level in enumerate(wheel._levels):
        assert (level.number, level.width) == (number, wheel._size**number)
        first = wheel.now // level.width
        for slot, bucket in enumerate(level.buckets):
            occupied = bucket is not None and bucket.first is not None
            assert bool(level.occupied >> slot & 1) is occupied, "a bit says which slots are occupied"
            if bucket is None:
                continue
            assert (bucket.wheel, bucket.level, bucket.slot) == (wheel, level, slot)
            previous: TimerTask | None = None
            task = bucket.first
            while task is not None:
                assert task._bucket is bucket
                assert task._previous is previous, "the links agree in both directions"
                start = first + (slot - first) % wheel._size
                assert task._expiration // level.width >= start, (
                    "a task is in the slot of its expiration, or in an earlier one"
                )
                tasks += 1
                previous, task = task, task._next
            assert bucket.last is previous
    assert tasks == len(wheel)


def check_watchers(watchers: Watchers) -> None:
    """Raise AssertionError where the order of a watch list, its chunks or the count of pairs are wrong."""
    watched = 0
    for key, place in watchers.table.items():
        for operation in operations_at(place):
            watched += 1
            keys = keys_at(operation._watched)
            assert any(key is one for one in keys) or key in keys, "an operation knows its keys"
        if isinstance(place, Chunk):
            check_chunks(place)
    assert watched == watchers.watched


def check_chunks(first: Chunk) -> None:
    """Raise AssertionError where the chunks of one list are not linked as they should be."""
    last = first
    check_numbers(first)
    while last.following is not None:
        following = last.following
        check_numbers(following)
        assert 0 < len(following.operations) <= CHUNK_LENGTH, "an empty chunk leaves the list"
        assert following.previous is last, "the links agree in both directions"
        assert following.first is first, "every chunk knows the first one"
        last = following
    assert first.first is None
    assert first.previous is (None if last is first else last), "the first chunk links to the last"


def check_numbers(chunk: Chunk) -> None:
    """Raise AssertionError where the operations of one chunk are not in the order of parking."""
    numbers = [operation._parked for operation in chunk.operations]
    assert numbers == sorted(numbers), "the watchers in a chunk are in the order of parking"
