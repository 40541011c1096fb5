"""The table of the keys that somebody waits for, against a model, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from purgatory.relay.interest import Interest, Shard
from purgatory.relay.keys import Key, encoded, shard_of
from tests.core.executed import executed

# Three in each of two shards.
KEYS: tuple[Key, ...] = tuple(
    key for shard in (1, 2) for key in [n for n in range(5_000) if shard_of(encoded(n)) == shard][:3]
)


class Waiters:
    """Stands in for a purgatory, and for a clock."""

    def __init__(self, *, caching: bool = True) -> None:
        self.watched: set[Key] = set()
        self.now = 0.0
        self.queued = 0
        self.wanted_changed = 0
        self.interest = Interest(
            self.watched.__contains__,
            self._queued,
            self._wanted_changed,
            lambda: self.now,
            caching=caching,
            anti_entropy=100,
        )

    def _queued(self) -> None:
        self.queued += 1

    def _wanted_changed(self) -> None:
        self.wanted_changed += 1

    def watch(self, *keys: Key) -> None:
        for key in keys:
            self.watched.add(key)
            self.interest.key_watched(key)

    def leave(self, *keys: Key) -> None:
        for key in keys:
            self.watched.discard(key)
            self.interest.key_left(key)

    def shard(self, key: Key) -> Shard:
        return self.interest.entries[key].shard

    def confirm(self) -> None:
        self.interest.confirmed(self.interest.wanted())

    def take_all(self) -> list[Key]:
        taken: list[Key] = []
        while self.interest.waiting:
            taken += self.interest.take(2)
        return taken


@pytest.fixture
def waiters() -> Waiters:
    """Two keys are watched, subscribed and fresh."""
    waiters = Waiters()
    waiters.watch("a", "b")
    waiters.confirm()
    assert sorted(map(str, waiters.take_all())) == ["a", "b"]
    waiters.queued = waiters.wanted_changed = 0
    return waiters


def test_a_key_that_is_watched_for_the_first_time_is_taken_before_and_after_its_confirmation() -> None:
    waiters = Waiters()
    waiters.watch("a")
    assert (waiters.queued, waiters.wanted_changed) == (1, 1)
    assert waiters.take_all() == ["a"]
    waiters.confirm()
    assert waiters.take_all() == ["a"]
    assert waiters.take_all() == []


def test_a_signal_of_a_watched_key_has_it_taken_once(waiters: Waiters) -> None:
    waiters.interest.signalled("a")
    waiters.interest.signalled("a")
    assert waiters.queued == 1
    assert waiters.take_all() == ["a"]


def test_a_signal_while_a_key_is_being_refreshed_has_it_taken_once_more(waiters: Waiters) -> None:
    waiters.interest.signalled("a")
    assert waiters.interest.take(10) == ["a"]
    waiters.interest.signalled("a")
    assert waiters.interest.take(10) == ["a"]


def test_a_signal_of_another_key_does_nothing(waiters: Waiters) -> None:
    waiters.interest.signalled("c")
    assert waiters.queued == 0
    assert not waiters.interest.waiting


def test_a_key_that_is_watched_again_soon_is_fresh(waiters: Waiters) -> None:
    waiters.leave("a")
    waiters.watch("a")
    assert (waiters.queued, waiters.wanted_changed) == (0, 0)


@pytest.mark.parametrize("what", ["signal", "shard", "all", "gap", "confirmation", "failure"])
def test_a_key_that_is_watched_again_is_unknown_after(what: str, waiters: Waiters) -> None:
    waiters.leave("a")
    shard = waiters.shard("a")
    if what == "signal":
        waiters.interest.signalled("a")
    elif what == "shard":
        waiters.interest.shard_signalled(shard)
    elif what == "all":
        waiters.interest.all_signalled()
    elif what == "gap":
        waiters.interest.unsubscribed([shard])
    elif what == "confirmation":
        waiters.interest.confirmed([shard])
    else:
        waiters.interest.give_back(["a"])
    # Nobody waits for it now.
    assert "a" not in waiters.take_all()
    waiters.watch("a")
    assert waiters.take_all() == ["a"]


def test_without_values_of_its_own_a_key_is_not_taken_because_it_is_watched() -> None:
    waiters = Waiters(caching=False)
    waiters.watch("a")
    assert not waiters.interest.waiting
    waiters.confirm()
    assert waiters.take_all() == ["a"]
    waiters.interest.signalled("a")
    assert waiters.take_all() == ["a"]


def test_a_value_is_never_fresh_without_a_subscription(waiters: Waiters) -> None:
    waiters.interest.unsubscribed(waiters.interest.shards)
    assert sorted(map(str, waiters.take_all())) == ["a", "b"]
    waiters.leave("a")
    waiters.watch("a")
    assert waiters.take_all() == ["a"]


def test_what_could_not_be_refreshed_is_taken_again_unless_it_is_fresh_or_left(waiters: Waiters) -> None:
    waiters.interest.all_signalled()
    taken = waiters.take_all()
    waiters.interest.give_back(taken)
    waiters.interest.signalled("a")
    assert waiters.take_all() == ["a"]
    assert waiters.interest.take_again(taken) == ["b"]
    waiters.interest.give_back(["b", "unheard of"])
    waiters.leave("b")
    assert waiters.interest.take_again(["b", "unheard of"]) == []


def test_keys_are_forgotten_when_nobody_has_watched_them_for_long(waiters: Waiters) -> None:
    waiters.leave("a")
    waiters.now = 10
    waiters.leave("b")
    waiters.interest.forget(10)
    assert list(waiters.interest.entries) == ["b"]
    assert waiters.interest.wanted() == [waiters.shard("b")]
    assert waiters.wanted_changed == 1
    waiters.watch("b")
    waiters.interest.forget(100)
    assert list(waiters.interest.entries) == ["b"]
    waiters.interest._check()


def test_a_shard_stays_wanted_while_it_has_another_key() -> None:
    waiters = Waiters()
    waiters.watch(*KEYS[:2])
    waiters.leave(KEYS[0])
    waiters.wanted_changed = 0
    waiters.interest.forget(100)
    assert waiters.wanted_changed == 0
    assert waiters.interest.wanted() == [waiters.shard(KEYS[1])]


def test_a_key_of_which_the_purgatory_has_told_wrongly_is_not_forgotten(waiters: Waiters) -> None:
    waiters.interest.key_left("a")
    waiters.interest.forget(100)
    assert waiters.take_all() == ["a"]
    # Nobody has told that this one was left.
    waiters.watched.discard("b")
    waiters.interest.all_signalled()
    assert waiters.take_all() == ["a"]
    waiters.interest.forget(100)
    assert list(waiters.interest.entries) == ["a"]
    waiters.interest._check()


def test_a_key_that_was_queued_and_forgotten_is_not_taken(waiters: Waiters) -> None:
    waiters.interest.signalled("a")
    waiters.leave("a")
    waiters.interest.forget(100)
    assert waiters.take_all() == []


def test_neither_signals_nor_shards_hold_up_the_others() -> None:
    waiters = Waiters()
    waiters.watch(*range(100))
    waiters.confirm()
    waiters.take_all()
    waiters.interest.all_signalled()
    seen: set[Key] = set()
    # A stream of signals of ten keys, faster than they can be refreshed.
    for _ in range(400):
        for key in range(10):
            waiters.interest.signalled(key)
        seen.update(waiters.interest.take(1))
    assert seen == set(range(100))


def test_each_shard_has_its_turn_within_the_interval() -> None:
    waiters = Waiters()
    waiters.watch("a")
    waiters.confirm()
    waiters.take_all()
    taken: list[float] = []
    for now in range(0, 1_000, 5):
        waiters.now = now
        waiters.interest.take_turns()
        taken += [waiters.now for _ in waiters.take_all()]
    between = [later - earlier for earlier, later in zip([0, *taken], taken, strict=False)]
    assert 50 <= min(between) <= max(between) <= 100
    assert len(set(between)) > 1


def test_a_batch_looks_at_a_bounded_number_of_keys() -> None:
    waiters = Waiters()
    waiters.watch(*range(2_000))
    waiters.confirm()
    waiters.leave(*range(2_000))
    assert executed("line", lambda: waiters.interest.take(10)) < 40 * 25
    assert waiters.interest.waiting
    assert waiters.take_all() == []


def test_a_signal_that_nobody_waits_for_costs_one_look_up(waiters: Waiters) -> None:
    for number in range(1_000):
        waiters.watch(number)
    assert executed("line", lambda: waiters.interest.signalled("c")) <= 3


def test_a_gap_costs_the_same_for_any_number_of_keys(waiters: Waiters) -> None:
    few = executed("line", waiters.interest.all_signalled)
    waiters.watch(*range(2_000))
    assert executed("line", waiters.interest.all_signalled) < few + 256 * 10


def test_it_describes_itself(waiters: Waiters) -> None:
    assert repr(waiters.interest) == "<Interest in 2 keys>"


class InterestMachine(RuleBasedStateMachine):
    """Compares the table with three sets: the fresh keys, those to be taken, and those in the table."""

    def __init__(self) -> None:
        super().__init__()
        self.waiters = Waiters()
        self.interest = self.waiters.interest
        self.table: set[Key] = set()
        self.fresh: set[Key] = set()
        self.due: set[Key] = set()
        self.taken: list[Key] = []

    def make_unknown(self, keys: Iterable[Key]) -> None:
        known = self.table.intersection(keys)
        self.fresh -= known
        self.due |= known & self.waiters.watched

    @rule(key=st.sampled_from(KEYS))
    def watch(self, key: Key) -> None:
        if key not in self.waiters.watched:
            self.waiters.watch(key)
            self.table.add(key)
            if key not in self.fresh:
                self.due.add(key)

    @rule(key=st.sampled_from(KEYS))
    def leave(self, key: Key) -> None:
        if key in self.waiters.watched:
            self.waiters.leave(key)
            self.due.discard(key)

    @rule(key=st.sampled_from(KEYS))
    def signal(self, key: Key) -> None:
        self.interest.signalled(key)
        self.make_unknown([key])

    @rule(number=st.sampled_from([1, 2]), what=st.sampled_from(["signal", "confirm", "lose"]))
    def happen_to_a_shard(self, number: int, what: str) -> None:
        shard = self.interest.shards[number]
        if what == "signal":
            self.interest.shard_signalled(shard)
        elif what == "confirm":
            self.interest.confirmed([shard])
        else:
            self.interest.unsubscribed([shard])
        self.make_unknown(key for key in KEYS if shard_of(encoded(key)) == number)

    @rule(limit=st.integers(1, 4))
    def take(self, limit: int) -> None:
        batch = self.interest.take(limit)
        assert len(batch) <= limit
        self.began(batch)

    @rule()
    def take_all(self) -> None:
        self.began(self.waiters.take_all())
        assert not self.due

    @rule()
    def fail(self) -> None:
        self.interest.give_back(self.taken)
        self.fresh.difference_update(self.taken)
        again = self.interest.take_again(self.taken)
        assert set(again) == {key for key in self.taken if key in self.waiters.watched}
        self.began(again)

    def began(self, batch: list[Key]) -> None:
        assert self.waiters.watched.issuperset(batch)
        assert self.fresh.isdisjoint(batch)
        self.taken = batch
        self.due.difference_update(batch)
        self.fresh.update(key for key in batch if self.waiters.shard(key).confirmed)

    @rule(seconds=st.sampled_from([0, 5, 20]))
    def forget(self, seconds: float) -> None:
        self.waiters.now += seconds
        self.interest.forget(self.waiters.now - 10)
        self.table = set(self.interest.entries)
        assert self.table >= self.waiters.watched
        self.fresh &= self.table

    @invariant()
    def holds(self) -> None:
        self.interest._check()
        assert self.table == set(self.interest.entries)
        for key in self.table:
            entry = self.interest.entries[key]
            assert (entry.fresh == entry.shard.epoch) == (key in self.fresh)
        assert not self.due or self.interest.waiting


TestInterestMachine = InterestMachine.TestCase
TestInterestMachine.settings = settings(stateful_step_count=40)
