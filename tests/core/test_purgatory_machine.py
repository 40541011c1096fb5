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
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from purgatory import DelayedOperation, OperationState, PurgatoryFull
from purgatory.observer import Timing
from purgatory.testing import ManualClock
from tests.core.finalized import Finalized
from tests.core.invariants import check_watchers, check_wheel
from tests.core.keys import BadKey, Key
from tests.operations import raising

NEW, PENDING, COMPLETED, EXPIRED, CANCELLED, FAILED = OperationState

# The max_pending of the second purgatory; the first one has no limit.
ROOM = 3


@dataclass(frozen=True)
class Step:
    """One action of a hook, on the operation with that number, modulo the number of operations."""

    act: str
    number: int
    where: int
    key: str
    timeout: float | None


@dataclass(frozen=True)
class Plan:
    """An operation to offer, with the script of its hooks. `trying` has a list of steps for each try."""

    where: int
    keys: list[str]
    timeout: float | None
    opened: bool
    trying: list[list[Step]] = field(default_factory=list)
    completing: list[Step] = field(default_factory=list)
    expiring: list[Step] = field(default_factory=list)


class Bad(Exception):
    """The exception that a hook raises. It names the operation."""


class Side(Protocol):
    """The actions of both sides. The number of an operation is its place in the order of creation."""

    log: list[tuple[object, ...]]

    def made(self) -> int: ...
    def open(self, number: int) -> None: ...
    def offer(self, plan: Plan) -> str: ...
    def check(self, where: int, key: str) -> int: ...
    def force(self, number: int) -> bool: ...
    def cancel(self, number: int) -> bool: ...
    def reschedule(self, number: int, timeout: float | None) -> bool: ...
    def cancel_for_key(self, where: int, key: str) -> list[int]: ...
    def spoil(self, name: str, how: str) -> None: ...


def perform(side: Side, number: int, step: Step) -> None:
    """Perform a step of an operation's script, and log the outcome."""
    target = step.number % side.made()
    outcome: object = None
    if step.act == "raise":
        raise Bad(number)
    if step.act == "check":
        outcome = side.check(step.where, step.key)
    elif step.act == "open":
        side.open(target)
    elif step.act == "light":
        side.open(target)
        outcome = side.check(step.where, step.key)
    elif step.act == "force":
        outcome = side.force(target)
    elif step.act == "cancel":
        outcome = side.cancel(target)
    elif step.act == "reschedule":
        outcome = side.reschedule(target, step.timeout)
    elif step.act == "cancel for key":
        outcome = side.cancel_for_key(step.where, step.key)
    elif step.act == "park":
        outcome = side.offer(Plan(step.where, [step.key, "d"], step.timeout, opened=step.number % 2 == 0))
    side.log.append((number, step.act, outcome))


class Script:
    def __init__(self, number: int, plan: Plan) -> None:
        self.number = number
        self.turns: dict[str, Iterator[list[Step]]] = {
            "try_complete": iter(plan.trying),
            "on_complete": iter([plan.completing]),
            "on_expiration": iter([plan.expiring]),
        }

    def run(self, side: Side, hook: str) -> None:
        side.log.append((self.number, hook))
        for step in next(self.turns[hook], ()):
            perform(side, self.number, step)


# The real side


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


class RaisingObserver:
    """Raises at every second call."""

    calls = 0

    def operation_finished(self, purgatory: str, operation: object, timing: Timing) -> None:
        self.calls += 1
        if self.calls % 2:
            raise BadObserver

    def key_checked(self, purgatory: str, key: object, tried: int, completed: int, at: float) -> None:
        self.calls += 1
        if self.calls % 2:
            raise BadObserver


class BadObserver(Exception):
    pass


class ToldKeys(set[str]):
    """The watched keys that are strings, as a purgatory tells of them."""

    def key_watched(self, key: Hashable) -> None:
        if isinstance(key, str):
            self.add(key)

    def key_left(self, key: Hashable) -> None:
        if isinstance(key, str):
            self.remove(key)


class Real:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.purgatories = [
            self.clock.purgatory("0", tick=1, wheel_size=4),
            self.clock.purgatory("1", tick=1, max_pending=ROOM, observers=[RaisingObserver()]),
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
        puppet = Puppet(self, plan, len(self.puppets))
        self.puppets.append(puppet)
        return self.offer_again(puppet.script.number, plan.where, plan.keys)

    def offer_again(self, number: int, where: int, keys: list[str]) -> str:
        try:
            self.purgatories[where].try_complete_else_watch(
                self.puppets[number], [self.keys.get(key, key) for key in keys]
            )
        except (PurgatoryFull, RuntimeError, BadKey) as error:
            return type(error).__name__
        return "taken"

    def check(self, where: int, key: str) -> int:
        return self.purgatories[where].check_and_complete(key)

    def force(self, number: int) -> bool:
        return self.puppets[number].force_complete()

    def cancel(self, number: int) -> bool:
        return self.puppets[number].cancel()

    def reschedule(self, number: int, timeout: float | None) -> bool:
        return self.puppets[number].reschedule(timeout)

    def cancel_for_key(self, where: int, key: str) -> list[int]:
        return numbers(self.purgatories[where].cancel_for_key(key))

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


# The model


class ModelOperation:
    def __init__(self, plan: Plan, number: int) -> None:
        self.script = Script(number, plan)
        self.number = number
        self.opened = plan.opened
        self.timeout = plan.timeout
        self.state = NEW
        self.where = -1
        self.keys: list[str] = []
        # While it is pending: its deadline in ticks, and its place among the operations due at that tick.
        self.due = (math.inf, 0)
        self.deadline: float | None = None
        # Then it has no place any more.
        self.rescheduled = False

    @property
    def done(self) -> bool:
        return self.state not in (NEW, PENDING)


class Model:
    def __init__(self, real_log: list[tuple[object, ...]]) -> None:
        self.real_log = real_log
        self.now = 0.0
        self.operations: list[ModelOperation] = []
        self.log: list[tuple[object, ...]] = []
        # For each purgatory: key -> the operations that watch it, and the counts of final states.
        self.watching: list[dict[str, list[ModelOperation]]] = [{}, {}]
        self.ended: list[Counter[OperationState]] = [Counter(), Counter()]
        self.depth = 0
        self.queue: list[tuple[int, str]] = []
        # Whether the hooks of an operation that ends are running, and the operations that end meanwhile.
        self.settling = False
        self.deferred: list[tuple[ModelOperation, Bad | None]] = []
        self.signals: dict[int, list[str]] = {}
        # The keys that cannot be hashed.
        self.unhashable: set[str] = set()
        self.placed = 0
        self.reports: list[str] = []

    def made(self) -> int:
        return len(self.operations)

    def pending(self, where: int) -> list[ModelOperation]:
        return [op for op in self.operations if op.state is PENDING and op.where == where]

    def open(self, number: int) -> None:
        self.operations[number].opened = True

    def offer(self, plan: Plan) -> str:
        operation = ModelOperation(plan, len(self.operations))
        self.operations.append(operation)
        return self.offer_again(operation.number, plan.where, plan.keys)

    def offer_again(self, number: int, where: int, keys: list[str]) -> str:
        operation = self.operations[number]
        if self.unhashable.intersection(keys):
            return "BadKey"
        if operation.state is not NEW or operation.where >= 0:
            return "RuntimeError"
        operation.where = where
        operation.keys = list(dict.fromkeys(keys))
        self.depth += 1
        self.attempt(operation)
        answer = "taken"
        if operation.state is NEW:
            if operation.timeout is not None and operation.timeout <= 0:
                self.end(operation, EXPIRED)
            elif where == 1 and len(self.pending(1)) >= ROOM:
                operation.where = -1
                operation.keys = []
                answer = "PurgatoryFull"
            else:
                operation.state = PENDING
                for key in operation.keys:
                    self.watching[where].setdefault(key, []).append(operation)
                self.place(operation)
        self.leave()
        return answer

    def place(self, operation: ModelOperation) -> None:
        self.placed += 1
        if operation.timeout is None:
            operation.due = (math.inf, self.placed)
            operation.deadline = None
        else:
            operation.deadline = self.now + operation.timeout
            operation.due = (math.ceil(operation.deadline), self.placed)

    def attempt(self, operation: ModelOperation) -> None:
        try:
            operation.script.run(self, "try_complete")
            if operation.opened:
                self.end(operation, COMPLETED)
        except Bad as error:
            if operation.done:
                self.reports.append(str(error))
            else:
                operation.state = FAILED
                self.forget(operation)
                self.settle_now_or_later(operation, error)

    def end(self, operation: ModelOperation, state: OperationState) -> bool:
        if operation.done:
            return False
        operation.state = state
        if operation.where >= 0:
            self.forget(operation)
            self.settle_now_or_later(operation, None)
        else:
            failure = self.run_hooks(operation)
            if failure is not None:
                raise failure
        return True

    def settle_now_or_later(self, operation: ModelOperation, failure: Bad | None) -> None:
        self.deferred.append((operation, failure))
        if self.settling:
            return
        self.depth += 1
        self.settling = True
        while self.deferred:
            operation, failure = self.deferred.pop(0)
            self.count(operation, failure or self.run_hooks(operation))
        self.settling = False
        self.leave()

    def run_hooks(self, operation: ModelOperation) -> Bad | None:
        state = operation.state
        if state in (COMPLETED, EXPIRED):
            try:
                operation.script.run(self, "on_complete")
                if state is EXPIRED:
                    operation.script.run(self, "on_expiration")
            except Bad as error:
                operation.state = FAILED
                return error
        return None

    def forget(self, operation: ModelOperation) -> None:
        for key, watching in list(self.watching[operation.where].items()):
            self.watching[operation.where][key] = [op for op in watching if op is not operation]
            if not self.watching[operation.where][key]:
                del self.watching[operation.where][key]

    def count(self, operation: ModelOperation, failure: Bad | None) -> None:
        self.ended[operation.where][operation.state] += 1
        if failure is not None:
            self.reports.append(str(failure))

    def leave(self) -> int:
        completed = 0
        if self.depth == 1:
            while self.queue:
                completed += self.run_check(*self.queue.pop(0))
        self.depth -= 1
        return completed

    def check(self, where: int, key: str) -> int:
        if self.depth:
            if (where, key) not in self.queue:
                self.queue.append((where, key))
            return 0
        self.depth = 1
        completed = self.run_check(where, key)
        return completed + self.leave()

    def run_check(self, where: int, key: str) -> int:
        completed = 0
        for operation in list(self.watching[where].get(key, [])):
            if operation.state is PENDING:
                self.attempt(operation)
                completed += operation.state is COMPLETED
        return completed

    def force(self, number: int) -> bool:
        return self.end(self.operations[number], COMPLETED)

    def cancel(self, number: int) -> bool:
        return self.end(self.operations[number], CANCELLED)

    def reschedule(self, number: int, timeout: float | None) -> bool:
        operation = self.operations[number]
        if operation.done:
            return False
        operation.timeout = timeout
        if operation.state is PENDING:
            if timeout is not None and timeout <= 0:
                self.end(operation, EXPIRED)
            else:
                operation.rescheduled = True
                self.place(operation)
        return True

    def cancel_for_key(self, where: int, key: str) -> list[int]:
        watching = list(self.watching[where].get(key, []))
        return [operation.number for operation in watching if self.end(operation, CANCELLED)]

    def signal(self, where: int, key: str) -> None:
        keys = self.signals.setdefault(where, [])
        if key not in keys:
            keys.append(key)

    def spoil(self, name: str, how: str) -> None:
        self.unhashable.discard(name)
        if how == "hash":
            self.unhashable.add(name)

    def cancel_at_an_allocation(self, plan: Plan, number: int, allocations: int) -> str:
        self.cancel(number)
        return self.offer(plan)

    def first(self, due: list[ModelOperation]) -> ModelOperation:
        """The operation that expires first. Where it may be a rescheduled one, the real log says which."""
        tick = min(operation.due[0] for operation in due)
        due = [operation for operation in due if operation.due[0] == tick]
        number, _ = self.real_log[len(self.log)]
        for operation in due:
            if operation.rescheduled and operation.number == number:
                return operation
        return min((op for op in due if not op.rescheduled), key=lambda operation: operation.due)

    def advance(self, seconds: float) -> list[str]:
        until = self.now + seconds
        for where, keys in list(self.signals.items()):
            self.depth += 1
            self.queue += [(where, key) for key in keys]
            self.leave()
        self.signals.clear()
        while due := [op for where in (0, 1) for op in self.pending(where) if op.due[0] <= until]:
            self.now = min(operation.due[0] for operation in due)
            for where in (0, 1):
                while due := [op for op in self.pending(where) if op.due[0] <= self.now]:
                    self.end(self.first(due), EXPIRED)
        self.now = until
        reports, self.reports = self.reports, []
        return sorted(reports)


# The comparison

WHERE = st.sampled_from([0, 0, 0, 1])
# Most operations watch "a", so its list is long.
KEYS = st.sampled_from("aaabcd")
# No script checks these, because a check of a bad key raises.
BAD_KEYS = "xy"
KEYS_TO_WATCH = st.sampled_from("aaabcd" + BAD_KEYS)
NUMBERS = st.integers(0, 40)
TIMEOUTS = st.sampled_from([None, None, None, -1, 0, 0.25, 1, 1, 1.5, 2, 2, 2, 3, 5, 17, 64, 65, 300])
ACTS = [
    "check",
    "light",
    "light",
    "open",
    "force",
    "cancel",
    "reschedule",
    "cancel for key",
    "park",
    "park",
    "raise",
]
STEPS = st.lists(st.builds(Step, st.sampled_from(ACTS), NUMBERS, WHERE, KEYS, TIMEOUTS), max_size=3)
PLANS = st.builds(
    Plan,
    where=WHERE,
    keys=st.lists(KEYS_TO_WATCH, min_size=1, max_size=4),
    timeout=TIMEOUTS,
    opened=st.sampled_from([False] * 7 + [True]),
    # The first try mostly does nothing; otherwise few operations would ever wait.
    trying=st.one_of(
        st.just([]), st.lists(STEPS, max_size=2).map(lambda turns: [[], *turns]), st.lists(STEPS)
    ),
    completing=STEPS,
    expiring=STEPS,
)
# Many of these make a watch list of several chunks.
LINING_UP = st.builds(
    Plan,
    where=st.just(0),
    keys=st.just(["a"]),
    timeout=TIMEOUTS,
    opened=st.just(False),
    trying=st.sampled_from([[], [], [], [[], [Step("park", 1, 0, "a", None)]]]),
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
        if self.incomparable:
            # The model does not know which keys are compared.
            plan = replace(plan, keys=[key for key in plan.keys if key not in BAD_KEYS] or ["a"])
        self.both("offer", plan)

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
        self.both("reschedule", number % self.real.made(), timeout)

    @rule(where=WHERE, key=KEYS)
    def cancel_for_key(self, where: int, key: str) -> None:
        self.both("cancel_for_key", where, key)

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
                assert puppet.deadline == expected.deadline
            assert puppet.scheduled == (expected.state is PENDING and expected.timeout is not None)

    @invariant()
    def the_books_are_as_the_model_says(self) -> None:
        for where, purgatory in enumerate(self.real.purgatories):
            figures = purgatory.statistics()
            pending, watching = self.model.pending(where), self.model.watching[where]
            ended = self.model.ended[where]
            assert figures.pending == len(pending)
            assert figures.watched == sum(len(operation.keys) for operation in pending)
            assert figures.watched == sum(map(len, watching.values()))
            watched = purgatory.watched_keys(100)
            names = {key.name if isinstance(key, Key) else key for key in watched}
            # The entry of a key stays where the key could not be looked up when its last operation left.
            assert set(watching) <= names <= set(watching).union(BAD_KEYS)
            assert figures.keys == len(watched)
            assert self.real.told[where] == {key for key in watching if key not in BAD_KEYS}
            if not self.spoiled:
                assert len(watched) == len(watching)
            assert figures.completed == ended[COMPLETED]
            assert figures.expired == ended[EXPIRED]
            assert figures.cancelled == ended[CANCELLED]
            assert figures.failed == ended[FAILED]
            for key in "abcd":
                expected = [operation.number for operation in watching.get(key, [])]
                assert numbers(purgatory.operations(key)) == expected
            assert sorted(numbers(purgatory.operations())) == sorted(op.number for op in pending)

    @invariant()
    def watchers_and_wheel_keep_their_invariants(self) -> None:
        for purgatory in self.real.purgatories:
            check_watchers(purgatory._engine.watchers)
            check_wheel(purgatory.timer.wheel)

    @invariant()
    def a_timer_is_armed_only_while_somebody_waits(self) -> None:
        for where, purgatory in enumerate(self.real.purgatories):
            pending = self.model.pending(where)
            assert len(purgatory.timer) == sum(operation.timeout is not None for operation in pending)
            if len(purgatory.timer):
                assert purgatory.timer.armed
            if not pending:
                assert not purgatory.timer.armed

    def teardown(self) -> None:
        for number in range(self.real.made()):
            self.both("cancel", number)
        for purgatory in self.real.purgatories:
            figures = purgatory.statistics()
            assert (figures.pending, figures.watched) == (0, 0)
            assert purgatory.operations() == []
            left = purgatory.watched_keys(100)
            assert figures.keys == len(left)
            assert self.spoiled or not left
            assert all(isinstance(key, Key) for key in left)


# Longer than usual, because Hypothesis may take five minutes to shrink a failure. The long profile takes as
# long on a busy machine.
TestPurgatoryMachine = pytest.mark.usefixtures("untraced")(
    pytest.mark.timeout(max(600, 4 * settings().max_examples))(PurgatoryMachine.TestCase)
)
TestPurgatoryMachine.settings = settings(max_examples=4 * settings().max_examples, stateful_step_count=40)
