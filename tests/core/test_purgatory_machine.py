"""Two purgatories on one clock are compared with a model that is simple enough to be obviously right.

The hooks of the operations follow scripts: they check, end, reschedule, open and park operations, and raise.
Both sides run the same scripts and log what happens. After every step both logs must be equal.

Some keys go bad after they were watched: they raise, or their hash changes. An observer raises, and
finalizers withdraw operations at any allocation. The model knows nothing of all that: it makes no difference.
"""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from purgatory import DelayedOperation, DelayedValue, OperationState, PurgatoryFull
from purgatory._core.outcome import Failure
from purgatory._core.timer.timer import HORIZON
from purgatory.bulk import Closing
from purgatory.observer import Timing
from purgatory.testing import ManualClock
from tests.core.finalized import Finalized
from tests.core.invariants import check_watchers, check_wheel
from tests.core.keys import BadKey, Key
from tests.core.purgatory_model import BAD_KEYS, ROOM, Model
from tests.core.scripts import Bad, Plan, Script, Step
from tests.operations import raising

NEW, PENDING, COMPLETED, EXPIRED, CANCELLED, FAILED = OperationState


class Puppet(DelayedOperation[int]):
    __slots__ = ("opened", "script", "side")

    def __init__(self, side: Real, plan: Plan, number: int) -> None:
        super().__init__(plan.timeout)
        self.side = side
        self.opened = plan.opened
        self.script = Script(number, plan)

    def try_complete(self) -> bool:
        self.script.run(self.side, "try_complete")
        return self.opened and self.force_complete()

    def on_complete(self) -> int:
        self.script.run(self.side, "on_complete")
        return self.script.number

    def on_expiration(self) -> None:
        self.script.run(self.side, "on_expiration")


class PuppetValue(Puppet, DelayedValue[int]):
    __slots__ = ()


class RaisingObserver:
    """Notes what it is told, and raises at every second call."""

    def __init__(self) -> None:
        self.calls = 0
        self.timings: dict[object, Timing] = {}
        self.checked: list[tuple[object, int, int]] = []

    def operation_finished(self, purgatory: str, operation: object, timing: Timing) -> None:
        self.timings[operation] = timing
        self.raise_or_not()

    def key_checked(self, purgatory: str, key: object, tried: int, completed: int, at: float) -> None:
        self.checked.append((key, tried, completed))
        self.raise_or_not()

    def raise_or_not(self) -> None:
        self.calls += 1
        if self.calls % 2:
            raise BadObserver


class BadObserver(Exception):
    pass


class ToldKeys(set[Hashable]):
    """The watched keys that cannot go bad, as a purgatory tells of them."""

    def key_watched(self, key: Hashable) -> None:
        if not isinstance(key, Key):
            self.add(key)

    def key_left(self, key: Hashable) -> None:
        if not isinstance(key, Key):
            self.remove(key)


class Real:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.observer = RaisingObserver()
        self.purgatories = [
            self.clock.purgatory("0", tick=1, wheel_size=4),
            self.clock.purgatory("1", tick=1, max_pending=ROOM, observers=[self.observer]),
        ]
        self.told = [ToldKeys() for _ in self.purgatories]
        for purgatory, told in zip(self.purgatories, self.told, strict=True):
            purgatory.observe_keys(told)
        self.puppets: list[Puppet] = []
        self.log: list[tuple[object, ...]] = []
        # Two keys of one hash.
        self.keys = {name: Key(name, 7) for name in BAD_KEYS}

    def made(self) -> int:
        return len(self.puppets)

    def open(self, number: int) -> None:
        self.puppets[number].opened = True

    def offer(self, plan: Plan) -> str:
        puppet = (PuppetValue if plan.value else Puppet)(self, plan, len(self.puppets))
        self.puppets.append(puppet)
        return self.offer_again(puppet.script.number, plan.where, plan.keys)

    def offer_again(self, number: int, where: int, keys: list[str]) -> str:
        try:
            self.purgatories[where].try_complete_else_watch(self.puppets[number], self.named(keys))
        except (PurgatoryFull, RuntimeError, ValueError, BadKey) as error:
            return type(error).__name__
        return "taken"

    def named(self, keys: list[str]) -> list[Hashable]:
        return [self.keys.get(key, key) for key in keys]

    def check(self, where: int, key: str) -> int:
        return self.purgatories[where].check_and_complete(key)

    def force(self, number: int) -> bool:
        return self.puppets[number].force_complete()

    def cancel(self, number: int) -> bool:
        return self.puppets[number].cancel()

    def reschedule(self, number: int, timeout: float | None) -> bool:
        return self.puppets[number].reschedule(timeout)

    def try_again_in(self, number: int, seconds: float | None) -> bool | str:
        try:
            return self.puppets[number].try_again_in(seconds)
        except RuntimeError as error:
            return type(error).__name__

    def watch_also(self, number: int, where: int, keys: list[str]) -> bool | str:
        if any(isinstance(key, Key) for key in self.puppets[number].keys):
            # When such a key has gone bad, the call may raise, and the model does not know whether it does.
            return "skipped"
        try:
            return self.purgatories[where].watch_also(self.puppets[number], self.named(keys))
        except (RuntimeError, BadKey) as error:
            return type(error).__name__

    def cancel_for_key(self, where: int, key: str) -> list[int]:
        return numbers(self.purgatories[where].cancel_for_key(key))

    def complete_for_key(self, where: int, key: str, value: int) -> int:
        return self.purgatories[where].complete_for_key(key, value)

    def fail_for_key(self, where: int, key: str, error: str) -> int:
        return self.purgatories[where].fail_for_key(key, Bad(error))

    def signal(self, where: int, key: str) -> None:
        self.purgatories[where].check_and_complete_threadsafe(key)

    def advance(self, seconds: float) -> list[str]:
        try:
            self.clock.advance(seconds)
        except ExceptionGroup as group:
            return sorted(str(error) for error in group.exceptions if isinstance(error, Bad))
        return []

    def spoil(self, name: str, how: str) -> None:
        key = self.keys[name]
        key.hashing = raising(BadKey("hash")) if how == "hash" else None
        key.comparing = raising(BadKey("eq")) if how == "eq" else None
        key.hashed += how == "change"

    def cancel_at_an_allocation(self, plan: Plan, number: int, allocations: int) -> str:
        """Offer an operation, and withdraw another one when so many objects have been allocated."""
        thresholds = gc.get_threshold()
        gc.disable()
        try:
            Finalized(self.puppets[number].cancel)
            gc.set_threshold(gc.get_count()[0] + allocations, *thresholds[1:])
            gc.enable()
            answer = self.offer(plan)
            gc.collect(0)
        finally:
            gc.enable()
            gc.set_threshold(*thresholds)
        return answer


def numbers(operations: list[DelayedOperation[int]]) -> list[int]:
    return [operation.script.number for operation in operations if isinstance(operation, Puppet)]


WHERE = st.sampled_from([0, 0, 0, 1])
# Most operations watch "a", so its list is long.
KEYS = st.sampled_from("aaabcd")
# Scripts give these to pending operations.
MORE_KEYS = "ABCD"
KEYS_TO_WATCH = st.sampled_from("aaabcd" + BAD_KEYS)
KEYS_TO_END = st.sampled_from("abcd" + MORE_KEYS)
NUMBERS = st.integers(0, 40)
TIMEOUTS = st.sampled_from([None, None, None, -1, 0, 0.25, 1, 1, 1.5, 2, 2, 2, 3, 5, 17, 64, 65, 300, 1e300])
ACTS = [
    "check",
    "light",
    "light",
    "open",
    "force",
    "cancel",
    "reschedule",
    "try again in",
    "try me again in",
    "try me again in",
    "watch also",
    "watch also myself",
    "cancel for key",
    "complete for key",
    "fail for key",
    "park",
    "park",
    "raise",
]
STEPS = st.lists(st.builds(Step, st.sampled_from(ACTS), NUMBERS, WHERE, KEYS, TIMEOUTS), max_size=3)
PLANS = st.builds(
    Plan,
    where=WHERE,
    keys=st.one_of(st.lists(KEYS_TO_WATCH, min_size=1, max_size=4), st.lists(KEYS_TO_WATCH, max_size=1)),
    timeout=TIMEOUTS,
    opened=st.sampled_from([False] * 7 + [True]),
    # The first try mostly does nothing; otherwise few operations would ever wait.
    trying=st.one_of(
        st.just([]), st.lists(STEPS, max_size=2).map(lambda turns: [[], *turns]), st.lists(STEPS)
    ),
    completing=STEPS,
    expiring=STEPS,
    value=st.sampled_from([False] * 4 + [True]),
)
# Many of these make a watch list of several chunks.
LINING_UP = st.builds(
    Plan,
    where=st.just(0),
    keys=st.just(["a"]),
    timeout=TIMEOUTS,
    opened=st.just(False),
    # The third operation and the fourth may give each other more keys.
    trying=st.builds(
        lambda act, number: [[], *[[Step(act, number, 0, "a", 2)]] * 2] if act else [],
        st.sampled_from(["", "", "", "park", "watch also", "watch also myself", "try me again in"]),
        st.integers(2, 3),
    ),
)


class PurgatoryMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.real = Real()
        self.model = Model(self.real.log)
        # Whether a key has ever gone bad, and the keys that cannot be compared now.
        self.spoiled = False
        self.incomparable: set[str] = set()

    def both(self, act: str, *arguments: object) -> None:
        """Perform an action on both sides; both must return the same, or raise the same."""
        answers: list[object] = []
        for side in (self.real, self.model):
            try:
                answers.append(getattr(side, act)(*arguments))
            except Bad as error:
                answers.append(repr(error))
        assert answers[0] == answers[1]

    @initialize(plans=st.one_of(st.lists(PLANS, max_size=8), st.lists(LINING_UP, min_size=18, max_size=50)))
    def begin_with(self, plans: list[Plan]) -> None:
        self.both("offer", Plan(0, ["a", "b"], 5, opened=False))
        self.both("offer", Plan(0, list("efghijklmnopqrst"), None, opened=False))
        for plan in plans:
            self.both("offer", plan)

    @rule(plan=PLANS)
    def offer(self, plan: Plan) -> None:
        self.both("offer", replace(plan, keys=self.comparable(plan.keys)))

    def comparable(self, keys: list[str]) -> list[str]:
        """The keys without those that cannot be compared: the model does not know which are compared."""
        return [key for key in keys if not (self.incomparable and key in BAD_KEYS)]

    @rule(name=st.sampled_from(BAD_KEYS), how=st.sampled_from(["hash", "eq", "change", "good"]))
    def spoil(self, name: str, how: str) -> None:
        self.both("spoil", name, how)
        self.spoiled = self.spoiled or how != "good"
        self.incomparable.discard(name)
        if how == "eq":
            self.incomparable.add(name)

    @rule(number=NUMBERS, keys=st.lists(KEYS, min_size=1, max_size=3), allocations=st.integers(0, 30))
    def cancel_at_an_allocation(self, number: int, keys: list[str], allocations: int) -> None:
        plan = Plan(0, keys, 5, opened=False)
        self.both("cancel_at_an_allocation", plan, number % self.real.made(), allocations)

    @rule(plan=PLANS, period=st.sampled_from([4, 16, 17]))
    def offer_due_at_the_same_time_as_others(self, plan: Plan, period: int) -> None:
        timeout = (self.model.now // period + 1) * period - self.model.now
        self.offer(replace(plan, timeout=timeout))

    @rule(number=NUMBERS, where=WHERE, keys=st.lists(KEYS, min_size=1, max_size=3))
    def offer_again(self, number: int, where: int, keys: list[str]) -> None:
        self.both("offer_again", number % self.real.made(), where, keys)

    def one_that_waits(self, number: int) -> int:
        """The number of one of the operations that wait, and sometimes of any one."""
        waiting = [operation.number for operation in self.model.operations if operation.state is PENDING]
        return waiting[number % len(waiting)] if number % 4 and waiting else number % self.real.made()

    @rule(number=NUMBERS)
    def open(self, number: int) -> None:
        self.both("open", number % self.real.made())

    @rule(where=WHERE, key=KEYS)
    def check(self, where: int, key: str) -> None:
        self.both("check", where, key)

    @rule(where=WHERE, key=KEYS)
    def signal(self, where: int, key: str) -> None:
        self.both("signal", where, key)

    @rule(number=NUMBERS)
    def force(self, number: int) -> None:
        self.both("force", number % self.real.made())

    @rule(number=NUMBERS)
    def cancel(self, number: int) -> None:
        self.both("cancel", number % self.real.made())

    @rule(number=NUMBERS, timeout=TIMEOUTS)
    def reschedule(self, number: int, timeout: float | None) -> None:
        self.both("reschedule", self.one_that_waits(number), timeout)

    @rule(number=NUMBERS, seconds=TIMEOUTS)
    def try_again_in(self, number: int, seconds: float | None) -> None:
        self.both("try_again_in", self.one_that_waits(number), seconds)

    @rule(number=NUMBERS, act=st.sampled_from(["reschedule", "try_again_in"]), seconds=TIMEOUTS)
    def change_the_times_of_one_that_is_going_to_be_tried(
        self, number: int, act: str, seconds: float | None
    ) -> None:
        asked = [operation.number for operation in self.model.operations if operation.wakes < math.inf]
        if asked:
            self.both(act, asked[number % len(asked)], seconds)

    @rule(number=NUMBERS, where=WHERE, keys=st.lists(KEYS_TO_WATCH, max_size=4))
    def watch_also(self, number: int, where: int, keys: list[str]) -> None:
        self.both("watch_also", self.one_that_waits(number), where, self.comparable(keys))

    @rule(where=WHERE, key=KEYS_TO_END)
    def cancel_for_key(self, where: int, key: str) -> None:
        self.both("cancel_for_key", where, key)

    @rule(where=WHERE, key=KEYS_TO_END)
    def complete_for_key(self, where: int, key: str) -> None:
        self.both("complete_for_key", where, key, 1_000)

    @rule(where=WHERE, key=KEYS_TO_END)
    def fail_for_key(self, where: int, key: str) -> None:
        self.both("fail_for_key", where, key, "given")

    @rule(quarters=st.sampled_from([0, 1, 2, 3, 4, 4, 8, 8, 20, 300, 1_300]))
    def advance(self, quarters: int) -> None:
        self.both("advance", quarters / 4)

    @invariant()
    def the_same_has_happened_in_the_same_order(self) -> None:
        assert self.real.log == self.model.log
        assert self.real.clock.time() == self.model.now

    @invariant()
    def hooks_run_once_or_not_at_all(self) -> None:
        ran = Counter(entry for entry in self.real.log if len(entry) == 2 and entry[1] != "try_complete")
        assert set(ran.values()) <= {1}
        for puppet in self.real.puppets:
            completed, expired = (
                ran[puppet.script.number, hook] for hook in ("on_complete", "on_expiration")
            )
            if puppet.state in (NEW, PENDING, CANCELLED):
                assert (completed, expired) == (0, 0)
            elif puppet.state is not FAILED:
                assert (completed, expired) == (1, puppet.expired)

    @invariant()
    def every_operation_is_as_the_model_says(self) -> None:
        for puppet, expected in zip(self.real.puppets, self.model.operations, strict=True):
            assert puppet.state is expected.state
            assert puppet.done == expected.done
            assert puppet.timeout == expected.timeout
            keys = [key.name if isinstance(key, Key) else key for key in puppet.keys]
            # Where a key cannot be hashed, one that was named twice is there twice.
            assert list(dict.fromkeys(keys)) == expected.keys
            if puppet.state is PENDING:
                assert puppet.deadline == (None if expected.deadline == math.inf else expected.deadline)
            assert puppet.scheduled == (expected.state is PENDING and expected.due <= HORIZON)
            assert puppet._tries == expected.tries
            assert puppet.timed_out == (expected.state is EXPIRED)
            if puppet.done:
                outcome = puppet._outcome
                if isinstance(outcome, Failure):
                    # A call of `exception` would keep it from being reported.
                    outcome = repr(outcome.exception)
                assert expected.outcome == (None if puppet.state is CANCELLED else outcome)

    @invariant()
    def the_books_are_as_the_model_says(self) -> None:
        for where, purgatory in enumerate(self.real.purgatories):
            figures = purgatory.statistics()
            pending, watching = self.model.pending(where), self.model.watching[where]
            ended = self.model.ended[where]
            assert figures.pending == len(pending)
            keyless = sum(operation.keyless for operation in pending)
            assert figures.watched - keyless == sum(len(operation.keys) for operation in pending)
            assert figures.watched - keyless == sum(map(len, watching.values()))
            watched = purgatory.watched_keys(100)
            names = {key.name if isinstance(key, Key) else key for key in watched}
            # The entry of a key stays where the key could not be looked up when its last operation left.
            assert set(watching) <= names <= set(watching).union(BAD_KEYS)
            # All operations that were offered without keys count as one key.
            assert figures.keys == len(watched) + (keyless > 0)
            assert self.real.told[where] == {key for key in watching if key not in BAD_KEYS}
            if not self.spoiled:
                assert len(watched) == len(watching)
            assert figures.completed == ended[COMPLETED]
            assert figures.expired == ended[EXPIRED]
            assert figures.cancelled == ended[CANCELLED]
            assert figures.failed == ended[FAILED]
            assert figures.expired_untried == self.model.expired_untried[where]
            for key in "abcd" + MORE_KEYS:
                expected = [operation.number for operation in watching.get(key, [])]
                assert numbers(purgatory.operations(key)) == expected
            assert sorted(numbers(purgatory.operations())) == sorted(op.number for op in pending)

    @invariant()
    def watchers_and_wheel_keep_their_invariants(self) -> None:
        for purgatory in self.real.purgatories:
            check_watchers(purgatory._engine.watchers)
            check_wheel(purgatory.timer.wheel)

    @invariant()
    def a_timer_is_armed_only_while_somebody_waits_for_a_time(self) -> None:
        for where, purgatory in enumerate(self.real.purgatories):
            pending = self.model.pending(where)
            assert len(purgatory.timer) == sum(operation.due <= HORIZON for operation in pending)
            assert purgatory.timer.armed == bool(len(purgatory.timer))

    @invariant()
    def an_observer_is_told_what_the_model_says(self) -> None:
        assert self.real.observer.checked == self.model.checked
        for puppet, expected in zip(self.real.puppets, self.model.operations, strict=True):
            if expected.done and expected.where == 1:
                timing = self.real.observer.timings[puppet]
                assert (timing.offered, timing.ended) == (expected.offered, expected.ended)
                assert timing.tries == expected.tries

    @invariant()
    def no_check_is_put_off(self) -> None:
        # Scripts are finite. A check that had to wait for the loop's next turn could hide a fault.
        for purgatory in self.real.purgatories:
            assert not purgatory._engine.reporter._warned_of_rounds
            assert not purgatory._engine.queue.waiting

    def teardown(self) -> None:
        self.closing_is_no_timeout()
        for operation in self.model.operations:
            if operation.where != 1:
                self.both("cancel", operation.number)
        for purgatory in self.real.purgatories:
            figures = purgatory.statistics()
            assert (figures.pending, figures.watched) == (0, 0)
            assert purgatory.operations() == []
            left = purgatory.watched_keys(100)
            assert figures.keys == len(left)
            assert self.spoiled or not left
            assert all(isinstance(key, Key) for key in left)

    def closing_is_no_timeout(self) -> None:
        """Close the second purgatory. From here on, the model knows no more."""
        timed_out = [puppet.timed_out for puppet in self.real.puppets]
        pending = [
            puppet for puppet in self.real.puppets if puppet._owner is self.real.purgatories[1]._engine
        ]
        for puppet in self.real.puppets:
            puppet.script.turns = dict.fromkeys(puppet.script.turns, iter([]))
        self.real.purgatories[1]._engine.shut()
        Closing(self.real.purgatories[1]._engine, EXPIRED).step()
        assert all(puppet.state is EXPIRED for puppet in pending)
        assert [puppet.timed_out for puppet in self.real.puppets] == timed_out


# Longer than usual, because Hypothesis may take five minutes to shrink a failure. The long profile takes as
# long on a busy machine.
TestPurgatoryMachine = pytest.mark.usefixtures("untraced")(
    pytest.mark.timeout(max(600, 4 * settings().max_examples))(PurgatoryMachine.TestCase)
)
TestPurgatoryMachine.settings = settings(max_examples=4 * settings().max_examples, stateful_step_count=40)
