"""The waits that most questions make."""

from __future__ import annotations

from benchmarks.waits import signals, targets


def test_waits_share_all_their_keys_or_none() -> None:
    assert targets(6, 3, per_key=2) == [(0, 1, 2), (3, 4, 5), (6, 7, 8)] * 2
    assert list(signals(6, 3, per_key=2)) == [0, 3, 6]


def test_every_wait_is_reached_by_a_signal_however_many_there_are() -> None:
    for waits in range(1, 30):
        for keys in (1, 3):
            made = targets(waits, keys)
            assert len(made) == waits
            assert {target[0] for target in made} == set(signals(waits, keys))
