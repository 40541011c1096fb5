"""Who waits."""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

import pytest

from purgatory import DelayedOperation, Purgatory
from purgatory.testing import ManualClock
from purgatory.web.dashboard import pending_sample as pending_sample_module
from purgatory.web.dashboard.pending_sample import KEYS, SHOWN, SHOWN_KEYS, HotKey, look_around
from purgatory.web.dashboard.recorder import Recorder
from tests.operations import Gate


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def held(clock: ManualClock) -> Purgatory:
    return clock.purgatory(observers=[Recorder()])


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> int:
    """Watchers counted in a round, fewer than usual."""
    monkeypatch.setattr(pending_sample_module, "COUNTED", 2_000)
    return 2_000


class Fetch(DelayedOperation[None]):
    def __init__(self, text: str) -> None:
        super().__init__(None)
        self.text = text

    def try_complete(self) -> bool:
        return False

    def __repr__(self) -> str:
        return self.text


def watch(held: Purgatory, many: int, *keys: Hashable) -> None:
    for _ in range(many):
        held.try_complete_else_watch(Gate(), keys)


def test_where_nobody_waits_nobody_is_seen(held: Purgatory) -> None:
    pending_sample = look_around(held, ["a key that was busy"], 0.0)
    assert (pending_sample.sampled, pending_sample.hottest, pending_sample.oldest) == (False, [], [])


def test_hottest_keys_come_with_their_watchers_the_hottest_first(held: Purgatory) -> None:
    choice = random.Random(1)
    for number in range(2_000):
        held.try_complete_else_watch(Gate(), [int(choice.paretovariate(1)), ("other", number % 7)])
    exact = {key: len(held.operations(key)) for key in held.watched_keys(10_000)}
    pending_sample = look_around(held, [], 0.0)
    assert [key.watchers for key in pending_sample.hottest] == sorted(exact.values(), reverse=True)[:SHOWN]
    assert {repr(key): count for key, count in exact.items()}.items() >= {
        (key.key, key.watchers) for key in pending_sample.hottest
    }
    assert not any(key.more for key in pending_sample.hottest)


def test_the_oldest_come_first_with_age_tries_and_what_is_left(clock: ManualClock, held: Purgatory) -> None:
    for number in range(2 * SHOWN):
        held.try_complete_else_watch(Gate(30 + number), [f"key {number % 3}"])
        clock.advance(1)
    held.check_and_complete("key 1")
    oldest = look_around(held, [], clock.time()).oldest
    assert len(oldest) == SHOWN
    now = 2.0 * SHOWN
    for number, waiting in enumerate(oldest):
        assert (waiting.kind, waiting.keys, waiting.more_keys) == ("Gate", [f"'key {number % 3}'"], 0)
        assert waiting.age == pytest.approx(now - number)
        assert waiting.due == pytest.approx(30 + 2 * number - now)
        assert waiting.tries == (2 if number % 3 == 1 else 1)
        assert waiting.text is None


def test_an_old_one_behind_a_busy_key_is_not_overlooked(clock: ManualClock, held: Purgatory) -> None:
    # The key was there before, and is kept there by others that come and go.
    first = held.try_complete_else_watch(Gate(), ["busy"])
    stuck = held.try_complete_else_watch(Gate(), ["quiet"])
    watch(held, 500, "busy")
    first.cancel()
    (oldest, *_) = look_around(held, [], 0.0).oldest
    assert oldest.keys == ["'quiet'"]
    assert not stuck.done


def test_an_operation_on_several_keys_is_shown_once_with_some_of_them(held: Purgatory) -> None:
    watch(held, 1, *range(1_000))
    watch(held, 1, *range(1_000, 1_002))
    first, second = look_around(held, [], 0.0).oldest
    assert (len(first.keys), first.more_keys) == (SHOWN_KEYS, 1_000 - SHOWN_KEYS)
    assert (second.keys, second.more_keys) == (["1000", "1001"], 0)


def test_an_operation_says_what_it_is_in_its_own_words(held: Purgatory) -> None:
    held.try_complete_else_watch(Fetch("<Fetch wants 5, has 3>"), ["a"])
    held.try_complete_else_watch(Fetch("x" * 10_000), ["a"])
    first, second = look_around(held, [], 0.0).oldest
    assert (first.text, first.due) == ("<Fetch wants 5, has 3>", None)
    assert len(second.text or "") < 1_000


def test_of_one_that_waited_before_anybody_observed_age_and_tries_are_not_known(clock: ManualClock) -> None:
    held = clock.purgatory()
    watch(held, 1, "a")
    held.add_observer(Recorder())
    watch(held, 1, "a")
    first, second = look_around(held, [], 1.0).oldest
    assert (first.age, first.tries) == (None, None)
    assert (second.age, second.tries) == (1.0, 1)


def test_where_there_are_more_keys_it_says_so_and_looks_at_both_ends_and_at_the_busiest(
    held: Purgatory,
) -> None:
    watch(held, 3, "first")
    watch(held, 1, *range(2 * KEYS))
    watch(held, 5, "in the middle")
    watch(held, 1, *range(2 * KEYS, 4 * KEYS))
    watch(held, 4, "last")
    pending_sample = look_around(held, ["in the middle", "last"], 0.0)
    assert pending_sample.sampled
    assert [(key.key, key.watchers) for key in pending_sample.hottest[:3]] == [
        ("'in the middle'", 5),
        ("'last'", 4),
        ("'first'", 3),
    ]
    assert pending_sample.oldest[0].keys == ["'first'"]


def test_of_very_long_lists_it_says_how_far_it_has_counted(held: Purgatory, counted: int) -> None:
    watch(held, counted // 2 + 100, "hot", "as hot")
    watch(held, 10, "cool")
    hottest = look_around(held, [], 0.0).hottest
    assert {key.key for key in hottest[:2]} == {"'hot'", "'as hot'"}
    assert all(key.more and counted // 2 <= key.watchers <= counted // 2 + 16 for key in hottest[:2])
    assert hottest[2] == HotKey("'cool'", 10, more=False)


def test_the_only_list_not_counted_to_its_end_has_all_the_rest(held: Purgatory, counted: int) -> None:
    watch(held, counted + 1_000, "hot")
    watch(held, 20, "cool", "cold")
    hottest = look_around(held, [], 0.0).hottest
    assert [(key.watchers, key.more) for key in hottest] == [
        (counted + 1_000, False),
        (20, False),
        (20, False),
    ]


def test_looking_changes_nothing(held: Purgatory) -> None:
    watch(held, 100, "a", "b")
    before: Any = held.statistics(), held.operations()
    look_around(held, ["a", "c"], 0.0)
    assert (held.statistics(), held.operations()) == before
