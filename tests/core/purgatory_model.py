"""A model of several purgatories on one clock that is simple enough to be obviously right."""

from __future__ import annotations

import math
from collections import Counter

from purgatory import OperationState
from tests.core.scripts import Bad, Plan, Script

NEW, PENDING, COMPLETED, EXPIRED, CANCELLED, FAILED = OperationState

# The max_pending of the second purgatory; the first one has no limit.
ROOM = 3

# No script checks these, because a check of a bad key raises.
BAD_KEYS = "xy"


class ModelOperation:
    def __init__(self, plan: Plan, number: int) -> None:
        self.script = Script(number, plan)
        self.number = number
        self.value = plan.value
        self.opened = plan.opened
        self.timeout = plan.timeout
        self.state = NEW
        self.where = -1
        self.keys: list[str] = []
        self.keyless = False
        self.deadline = math.inf
        # The tick at which it is tried once more, if that is before its deadline.
        self.wakes = math.inf
        # Its place among the operations that are due at one tick. After a change of the tick it has none.
        self.place = 0
        self.moved = False
        self.tries = 0
        # The times of the offer and of the end.
        self.offered = self.ended = math.nan
        self.outcome: object = None

    @property
    def done(self) -> bool:
        return self.state not in (NEW, PENDING)

    @property
    def due(self) -> float:
        """The tick at which it expires or is tried, whichever comes first."""
        return min(self.wakes, self.deadline if self.deadline == math.inf else math.ceil(self.deadline))


class Model:
    def __init__(self, real_log: list[tuple[object, ...]]) -> None:
        self.real_log = real_log
        self.now = 0.0
        self.operations: list[ModelOperation] = []
        self.log: list[tuple[object, ...]] = []
        # For each purgatory: key -> the operations that watch it, and the counts of final states.
        self.watching: list[dict[str, list[ModelOperation]]] = [{}, {}]
        self.ended: list[Counter[OperationState]] = [Counter(), Counter()]
        self.expired_untried = [0, 0]
        # What an observer of the second one is told of checks: the key, how many were tried and completed.
        self.checked: list[tuple[str, int, int]] = []
        # The operations that `watch_also` is trying.
        self.widened: list[ModelOperation] = []
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
        if not (keys or operation.value):
            return "ValueError"
        if operation.state is not NEW or operation.where >= 0:
            return "RuntimeError"
        operation.where = where
        operation.offered = self.now
        operation.keyless = not keys
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
                operation.tries = 0
                operation.wakes = math.inf
                answer = "PurgatoryFull"
            else:
                operation.state = PENDING
                for key in operation.keys:
                    self.watching[where].setdefault(key, []).append(operation)
                self.placed += 1
                operation.place = self.placed
                self.set_deadline(operation)
        self.leave()
        return answer

    def set_deadline(self, operation: ModelOperation) -> None:
        operation.deadline = math.inf if operation.timeout is None else self.now + operation.timeout
        if operation.wakes >= operation.deadline:
            # For good, even if it gets a later deadline again.
            operation.wakes = math.inf

    def attempt(self, operation: ModelOperation) -> None:
        operation.tries += 1
        try:
            operation.script.run(self, "try_complete")
            if operation.opened:
                self.end(operation, COMPLETED)
        except Bad as error:
            if operation.done:
                self.reports.append(str(error))
            else:
                operation.state = FAILED
                operation.outcome = repr(error)
                self.forget(operation)
                self.settle_now_or_later(operation, error)

    def end(self, operation: ModelOperation, state: OperationState, outcome: object = None) -> bool:
        if operation.done:
            return False
        operation.state = state
        operation.outcome = outcome
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
                if operation.outcome is None:
                    operation.outcome = operation.number
                if state is EXPIRED:
                    operation.script.run(self, "on_expiration")
            except Bad as error:
                operation.state = FAILED
                operation.outcome = repr(error)
                return error
        return None

    def forget(self, operation: ModelOperation) -> None:
        for key, watching in list(self.watching[operation.where].items()):
            self.watching[operation.where][key] = [op for op in watching if op is not operation]
            if not self.watching[operation.where][key]:
                del self.watching[operation.where][key]

    def count(self, operation: ModelOperation, failure: Bad | None) -> None:
        self.ended[operation.where][operation.state] += 1
        operation.ended = self.now
        if operation.state is EXPIRED and operation.tries == 1 and not operation.value:
            # Nobody could check its keys when its timeout was zero or less.
            self.expired_untried[operation.where] += (operation.timeout or 0) > 0
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
        tried = completed = 0
        for operation in list(self.watching[where].get(key, [])):
            if operation.state is PENDING:
                self.attempt(operation)
                tried += 1
                completed += operation.state is COMPLETED
        if where == 1:
            self.checked.append((key, tried, completed))
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
                operation.moved = True
                self.set_deadline(operation)
        return True

    def try_again_in(self, number: int, seconds: float | None) -> bool | str:
        operation = self.operations[number]
        if operation.done:
            return False
        if operation.where < 0:
            return "RuntimeError"
        operation.moved = True
        operation.wakes = math.inf if seconds is None else math.ceil(self.now + max(seconds, 1))
        if operation.wakes >= operation.deadline:
            operation.wakes = math.inf
        return True

    def watch_also(self, number: int, where: int, keys: list[str]) -> bool | str:
        operation = self.operations[number]
        if any(key in BAD_KEYS for key in operation.keys):
            return "skipped"
        if operation.done:
            return False
        if operation.state is not PENDING or operation.where != where:
            return "RuntimeError"
        if self.unhashable.intersection(keys):
            return "BadKey"
        self.depth += 1
        if operation not in self.widened:
            self.widened.append(operation)
            self.attempt(operation)
            self.widened.remove(operation)
        for key in keys:
            if operation.state is PENDING and key not in operation.keys:
                operation.keys.append(key)
                self.watching[where].setdefault(key, []).append(operation)
        self.leave()
        return operation.state is PENDING

    def end_for_key(self, where: int, key: str, state: OperationState, outcome: object = None) -> list[int]:
        watching = list(self.watching[where].get(key, []))
        return [operation.number for operation in watching if self.end(operation, state, outcome)]

    def cancel_for_key(self, where: int, key: str) -> list[int]:
        return self.end_for_key(where, key, CANCELLED)

    def complete_for_key(self, where: int, key: str, value: int) -> int:
        return len(self.end_for_key(where, key, COMPLETED, value))

    def fail_for_key(self, where: int, key: str, error: str) -> int:
        return len(self.end_for_key(where, key, FAILED, repr(Bad(error))))

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
        """The operation that is due first. Where it may be one that was moved, the real log says which."""
        number = self.real_log[len(self.log)][0]
        for operation in due:
            if operation.moved and operation.number == number:
                return operation
        return min((op for op in due if not op.moved), key=lambda operation: operation.place)

    def run_due(self, operation: ModelOperation) -> None:
        if operation.wakes > self.now:
            self.end(operation, EXPIRED)
            return
        operation.wakes = math.inf
        self.depth += 1
        self.attempt(operation)
        self.leave()

    def advance(self, seconds: float) -> list[str]:
        until = self.now + seconds
        for where, keys in list(self.signals.items()):
            self.depth += 1
            self.queue += [(where, key) for key in keys]
            self.leave()
        self.signals.clear()
        while due := [op for where in (0, 1) for op in self.pending(where) if op.due <= until]:
            self.now = min(operation.due for operation in due)
            for where in (0, 1):
                while due := [op for op in self.pending(where) if op.due <= self.now]:
                    self.run_due(self.first(due))
        self.now = until
        reports, self.reports = self.reports, []
        return sorted(reports)
