"""Scripts of what hooks do, for two sides that both run them and log what happens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol


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
    # Whether it is a DelayedValue, which may do without keys.
    value: bool = False


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
    def try_again_in(self, number: int, seconds: float | None) -> bool | str: ...
    def watch_also(self, number: int, where: int, keys: list[str]) -> bool | str: ...
    def cancel_for_key(self, where: int, key: str) -> list[int]: ...
    def complete_for_key(self, where: int, key: str, value: int) -> int: ...
    def fail_for_key(self, where: int, key: str, error: str) -> int: ...
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
    elif step.act == "try again in":
        outcome = side.try_again_in(target, step.timeout)
    elif step.act == "try me again in":
        outcome = side.try_again_in(number, step.timeout)
    elif step.act == "watch also":
        # Nobody checks a key in upper case. A check that is under way may try an operation that has just been
        # given the key, or may not: that is not promised.
        outcome = side.watch_also(target, step.where, [step.key.upper()])
    elif step.act == "watch also myself":
        outcome = side.watch_also(number, step.where, [step.key.upper()])
    elif step.act == "cancel for key":
        outcome = side.cancel_for_key(step.where, step.key)
    elif step.act == "complete for key":
        outcome = side.complete_for_key(step.where, step.key, number)
    elif step.act == "fail for key":
        outcome = side.fail_for_key(step.where, step.key, f"of {number}")
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
