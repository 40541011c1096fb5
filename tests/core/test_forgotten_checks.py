"""The two most natural mistakes, a forgotten check and a check before the change, are told."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from purgatory import AsyncDelayedOperation, DelayedOperation, DelayedValue, Purgatory
from purgatory.testing import ManualClock
from tests.core.purgatories import nothing_is_left
from tests.operations import Gate, Stop, a_few_turns, raising


def ready(state: dict[str, bool]) -> bool:
    return state.get("ready", False)


LINE = ready.__code__.co_firstlineno


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize(
    ("timeout", "checks", "words"),
    [
        (0.2, 0, "did not hold at its first try, and nobody checked 'jobs:7' within 0.2 seconds"),
        (0.2, 2, "did not hold within 0.2 seconds, tried 3 times; keys: 'jobs:7'"),
        (-1, 0, "did not hold when it was tried; keys: 'jobs:7'"),
        (0, 0, "did not hold when it was tried; keys: 'jobs:7'"),
    ],
)
async def test_the_error_of_a_timeout_says_what_is_known(timeout: float, checks: int, words: str) -> None:
    async with Purgatory() as purgatory:
        predicate = partial(ready, {})
        wait = asyncio.create_task(purgatory.wait_until(predicate, ["jobs:7"], timeout))
        await a_few_turns()
        for _ in range(checks):
            purgatory.check_and_complete("jobs:7")
        with pytest.raises(TimeoutError) as raised:
            await wait
    assert str(raised.value) == f"ready (test_forgotten_checks.py:{LINE}) {words}"


async def test_the_error_of_closing_says_so() -> None:
    async with Purgatory() as purgatory:
        wait = asyncio.create_task(purgatory.wait_until(partial(ready, {}), ["a", "b"], 60))
        await a_few_turns()
    with pytest.raises(TimeoutError, match=r"did not hold before the purgatory was closed; keys: 'a', 'b'$"):
        await wait


class Callable_:
    def __call__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "<a condition>"


async def test_a_predicate_that_is_an_object_is_named_by_its_repr(purgatory: Purgatory) -> None:
    with pytest.raises(TimeoutError, match=r"^<a condition> did not hold"):
        await purgatory.wait_until(Callable_(), ["a"], 0)


async def test_the_repr_of_a_wait_has_the_place_of_its_predicate(purgatory: Purgatory) -> None:
    wait = asyncio.create_task(purgatory.wait_until(partial(ready, {}), ["a"]))
    await a_few_turns()
    place = f"ready (test_forgotten_checks.py:{LINE})"
    assert repr(purgatory.operations()[0]) == (
        f"<PredicateOperation pending timeout=None keys=['a'] tried once, {place}>"
    )
    wait.cancel()


def test_expirations_that_nobody_tried_are_counted(clock: ManualClock, held: Purgatory) -> None:
    for keys in (["never checked"], ["checked"]):
        held.try_complete_else_watch(Gate(1), keys)
    held.try_complete_else_watch(Gate(0), ["at once"])
    held.try_complete_else_watch(DelayedValue[int](1), ["nobody checks its key"])
    held.check_and_complete("checked")
    clock.advance(2)
    assert (held.statistics().expired, held.statistics().expired_untried) == (4, 1)


async def test_closing_counts_none_of_them() -> None:
    async with Purgatory() as purgatory:
        purgatory.try_complete_else_watch(Gate(60), ["a"])
    assert (purgatory.statistics().expired, purgatory.statistics().expired_untried) == (1, 0)


# Debug mode


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "its condition holds" in record.message]


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize("debug", [True, False])
async def test_debug_mode_tells_that_an_expired_operation_missed_a_change(
    debug: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with Purgatory("p", debug=debug) as purgatory:
        gate = purgatory.try_complete_else_watch(Gate(1), ["jobs:7"])
        other = purgatory.try_complete_else_watch(Gate(1), ["jobs:8"])
        gate.opened = True
        assert await gate == "gate"
        assert gate.expired
        assert await other == "gate"
        await a_few_turns()
        assert purgatory.statistics().missed_changes == (1 if debug else 0)
        assert purgatory.statistics().expired == 2
    assert gate.ran.count("on_complete") == 1
    assert warnings(caplog) == (
        [
            "purgatory 'p': <Gate expired timeout=1.0 s keys=['jobs:7'] tried once> expired, but its "
            "condition holds: after the change nobody checked 'jobs:7' (tried once)"
        ]
        if debug
        else []
    )


@pytest.mark.usefixtures("virtual_time")
async def test_debug_mode_looks_at_a_predicate_once_more(caplog: pytest.LogCaptureFixture) -> None:
    state: dict[str, bool] = {}
    async with Purgatory("p", debug=True) as purgatory:
        wait = asyncio.create_task(purgatory.wait_until(partial(ready, state), ["jobs:7"], 1))
        await a_few_turns()
        state["ready"] = True
        with pytest.raises(TimeoutError):
            await wait
        await a_few_turns()
    (warning,) = warnings(caplog)
    assert f"ready (test_forgotten_checks.py:{LINE})" in warning


@pytest.mark.usefixtures("virtual_time")
async def test_debug_mode_reports_a_condition_that_raises_at_expiry(reported: list[dict[str, Any]]) -> None:
    error = ValueError("bad")
    async with Purgatory("p", debug=True) as purgatory:
        gate = purgatory.try_complete_else_watch(Gate(1), ["a"])
        gate.trying = raising(error)
        await gate
        assert gate.expired
    assert [context["exception"] for context in reported] == [error]


def test_an_interruption_of_that_look_is_raised_when_the_operation_has_ended(clock: ManualClock) -> None:
    purgatory = Purgatory(debug=True)
    purgatory._open_on(clock._as_loop)
    gate = purgatory.try_complete_else_watch(Gate(60), ["a"])
    gate.trying = raising(Stop("now"))
    with pytest.raises(Stop):
        gate.run()
    assert gate.ran == ["try_complete", "try_complete", "on_complete", "on_expiration"]
    assert nothing_is_left(purgatory)


class Looking(AsyncDelayedOperation[bool]):
    async def condition(self) -> bool:
        return False


class Ending(DelayedOperation[None]):
    """Completes another operation when it is tried at its expiry."""

    def __init__(self, timeout: float, other: Gate) -> None:
        super().__init__(timeout)
        self.other = other

    def try_complete(self) -> bool:
        return self.expired and self.other.force_complete() and False


@pytest.mark.usefixtures("virtual_time")
async def test_debug_mode_counts_only_the_operation_itself(caplog: pytest.LogCaptureFixture) -> None:
    async with Purgatory("p", debug=True) as purgatory:
        other = purgatory.try_complete_else_watch(Gate(60), ["other"])
        ending = purgatory.try_complete_else_watch(Ending(1, other), ["a"])
        looking = purgatory.try_complete_else_watch(Looking(1), ["a"])
        await asyncio.gather(ending, looking)
        assert other.done
        await a_few_turns()
        assert purgatory.statistics().missed_changes == 0
    assert warnings(caplog) == []
