"""The sample of hottest keys and oldest operations."""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

import pytest

from purgatory import DelayedOperation, DelayedValue, Purgatory
from purgatory._core.watch_list import CHUNK_LENGTH
from purgatory.testing import ManualClock
from purgatory.web.dashboard import pending_sample
from purgatory.web.dashboard.ended_sample import SHOWN_KEYS
from purgatory.web.dashboard.pending_sample import KEY_LIMIT, SHOWN, HotKey, sample_pending
from purgatory.web.dashboard.recorder import Recorder
from tests.operations import Gate


@pytest.fixture
def purgatory(clock: ManualClock) -> Purgatory:
    return clock.purgatory(observers=[Recorder(lambda: 0)])


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of watchers counted in a round, smaller than usual."""
    monkeypatch.setattr(pending_sample, "COUNTED", 2_000)
    return 2_000


class Fetch(DelayedOperation[None]):
    def __init__(self, text: str) -> None:
        super().__init__(None)
        self.text = text

    def try_complete(self) -> bool:
        return False

    def __repr__(self) -> str:
        return self.text


def watch(purgatory: Purgatory, many: int, *keys: Hashable) -> None:
    for _ in range(many):
        purgatory.try_complete_else_watch(Gate(), keys)


def test_the_sample_of_an_empty_purgatory_is_empty(purgatory: Purgatory) -> None:
    sample = sample_pending(purgatory, {}, 0.0)
    assert (sample.sampled, sample.hottest, sample.busiest, sample.oldest) == (False, [], [], [])


def test_the_keys_with_the_most_watchers_come_first(purgatory: Purgatory) -> None:
    choice = random.Random(1)
    for number in range(2_000):
        purgatory.try_complete_else_watch(Gate(), [int(choice.paretovariate(1)), ("other", number % 7)])
    exact = {key: len(purgatory.operations(key)) for key in purgatory.watched_keys(10_000)}
    hottest = sample_pending(purgatory, {}, 0.0).hottest
    assert [key.watchers for key in hottest] == sorted(exact.values(), reverse=True)[:SHOWN]
    assert {repr(key): count for key, count in exact.items()}.items() >= {
        (key.key, key.watchers) for key in hottest
    }
    assert not any(key.more for key in hottest)


def test_the_keys_with_the_most_tries_are_shown_too_also_when_nobody_watches_them(
    purgatory: Purgatory,
) -> None:
    watch(purgatory, 3, "watched")
    watch(purgatory, 1, "tried")
    sample = sample_pending(purgatory, {"left": 7.5, "tried": 9.0}, 0.0)
    assert sample.busiest == [
        HotKey("'tried'", 1, more=False, tries=9.0),
        HotKey("'left'", 0, more=False, tries=7.5),
    ]
    assert sample.hottest == [
        HotKey("'watched'", 3, more=False, tries=None),
        HotKey("'tried'", 1, more=False, tries=9.0),
    ]


def test_the_oldest_operations_come_first_with_age_tries_and_time_left(
    clock: ManualClock, purgatory: Purgatory
) -> None:
    for number in range(2 * SHOWN):
        purgatory.try_complete_else_watch(Gate(30 + number), [f"key {number % 3}"])
        clock.advance(1)
    purgatory.check_and_complete("key 1")
    oldest = sample_pending(purgatory, {}, clock.time()).oldest
    assert len(oldest) == SHOWN
    now = 2.0 * SHOWN
    for number, operation in enumerate(oldest):
        assert (operation.kind, operation.keys, operation.more_keys) == ("Gate", [f"'key {number % 3}'"], 0)
        assert operation.age == pytest.approx(now - number)
        assert operation.due == pytest.approx(30 + 2 * number - now)
        assert operation.tries == (2 if number % 3 == 1 else 1)
        assert operation.text is None


def test_an_old_operation_on_a_younger_key_is_found(clock: ManualClock, purgatory: Purgatory) -> None:
    # The busy key is older, but the first operation on it is gone.
    first = purgatory.try_complete_else_watch(Gate(), ["busy"])
    stuck = purgatory.try_complete_else_watch(Gate(), ["quiet"])
    watch(purgatory, 500, "busy")
    first.cancel()
    (oldest, *_) = sample_pending(purgatory, {}, 0.0).oldest
    assert oldest.keys == ["'quiet'"]
    assert not stuck.done


def test_an_operation_on_many_keys_is_shown_once_with_a_few_of_them(purgatory: Purgatory) -> None:
    watch(purgatory, 1, *range(1_000))
    watch(purgatory, 1, *range(1_000, 1_002))
    first, second = sample_pending(purgatory, {}, 0.0).oldest
    assert (len(first.keys), first.more_keys) == (SHOWN_KEYS, 1_000 - SHOWN_KEYS)
    assert (second.keys, second.more_keys) == (["1000", "1001"], 0)


def test_an_operation_with_a_repr_of_its_own_shows_it_cut(purgatory: Purgatory) -> None:
    purgatory.try_complete_else_watch(Fetch("<Fetch wants 5, has 3>"), ["a"])
    purgatory.try_complete_else_watch(Fetch("x" * 10_000), ["a"])
    first, second = sample_pending(purgatory, {}, 0.0).oldest
    assert (first.text, first.due) == ("<Fetch wants 5, has 3>", None)
    assert len(second.text or "") < 1_000


def test_age_and_tries_are_unknown_of_operations_older_than_the_first_observer(clock: ManualClock) -> None:
    purgatory = clock.purgatory()
    watch(purgatory, 1, "a")
    purgatory.add_observer(Recorder(lambda: 0))
    watch(purgatory, 1, "a")
    first, second = sample_pending(purgatory, {}, 1.0).oldest
    assert (first.age, first.tries) == (None, None)
    assert (second.age, second.tries) == (1.0, 1)


def test_of_many_keys_it_reads_the_oldest_the_newest_and_the_busiest(
    purgatory: Purgatory,
) -> None:
    watch(purgatory, 3, "first")
    watch(purgatory, 1, *range(2 * KEY_LIMIT))
    watch(purgatory, 5, "in the middle")
    watch(purgatory, 1, *range(2 * KEY_LIMIT, 4 * KEY_LIMIT))
    watch(purgatory, 4, "last")
    sample = sample_pending(purgatory, {"in the middle": 1.0, "last": 2.0}, 0.0)
    assert sample.sampled
    assert [(key.key, key.watchers) for key in sample.hottest[:3]] == [
        ("'in the middle'", 5),
        ("'last'", 4),
        ("'first'", 3),
    ]
    assert sample.oldest[0].keys == ["'first'"]


def test_very_long_watch_lists_are_counted_up_to_a_limit(purgatory: Purgatory, counted: int) -> None:
    watch(purgatory, counted // 2 + 100, "hot", "as hot")
    watch(purgatory, 10, "cool")
    hottest = sample_pending(purgatory, {}, 0.0).hottest
    assert {key.key for key in hottest[:2]} == {"'hot'", "'as hot'"}
    assert all(
        key.more and counted // 2 <= key.watchers <= counted // 2 + CHUNK_LENGTH for key in hottest[:2]
    )
    assert hottest[2] == HotKey("'cool'", 10, more=False, tries=None)


def test_the_only_list_that_is_not_counted_to_its_end_holds_the_rest(
    purgatory: Purgatory, counted: int
) -> None:
    watch(purgatory, counted + 1_000, "hot")
    watch(purgatory, 20, "cool", "cold")
    hottest = sample_pending(purgatory, {}, 0.0).hottest
    assert [(key.watchers, key.more) for key in hottest] == [
        (counted + 1_000, False),
        (20, False),
        (20, False),
    ]


def test_sampling_changes_nothing(purgatory: Purgatory) -> None:
    watch(purgatory, 100, "a", "b")
    before: Any = purgatory.statistics(), purgatory.operations()
    sample_pending(purgatory, {"a": 1.0, "c": 2.0}, 0.0)
    assert (purgatory.statistics(), purgatory.operations()) == before


def test_an_operation_without_a_key_is_among_the_oldest_and_heats_no_key(
    purgatory: Purgatory, counted: int
) -> None:
    for _ in range(SHOWN - 1):
        purgatory.try_complete_else_watch(DelayedValue[int](None))
    watch(purgatory, counted + 1_000, "hot")
    sample = sample_pending(purgatory, {}, 0.0)
    assert [(each.kind, each.keys, each.more_keys) for each in sample.oldest] == [
        *[("DelayedValue", [], 0)] * (SHOWN - 1),
        ("Gate", ["'hot'"], 0),
    ]
    assert sample.hottest == [HotKey("'hot'", counted + 1_000, more=False, tries=None)]
