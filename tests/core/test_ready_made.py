"""The operations that need no class of the user's own."""

from __future__ import annotations

import asyncio
import gc
import pickle
import re
import weakref
from typing import Any

import pytest

from purgatory import (
    DelayedOperation,
    DelayedQuorum,
    DelayedValue,
    OperationState,
    Purgatory,
    QuorumNotReached,
    QuorumTimedOut,
    Session,
)
from purgatory.testing import ManualClock

PENDING, COMPLETED = OperationState.PENDING, OperationState.COMPLETED
EXPIRED, FAILED = OperationState.EXPIRED, OperationState.FAILED


# DelayedValue


async def test_awaiting_a_value_gives_what_somebody_hands_over(purgatory: Purgatory) -> None:
    value = purgatory.try_complete_else_watch(DelayedValue[str](60), ["job 7"])
    assert isinstance(value, DelayedOperation)
    wait = asyncio.ensure_future(value)
    await asyncio.sleep(0)
    assert value.complete("done")
    assert await wait == "done"


async def test_awaiting_a_value_raises_the_error_that_somebody_gives(purgatory: Purgatory) -> None:
    value = purgatory.try_complete_else_watch(DelayedValue[str](60), ["job 7"])
    assert value.fail(OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        await value


def test_a_check_of_its_key_does_nothing(held: Purgatory) -> None:
    value = held.try_complete_else_watch(DelayedValue[str](60), ["job 7"])
    assert held.check_and_complete("job 7") == 0
    assert value.state is PENDING


def test_a_value_that_does_not_come_is_a_timeout_error_that_names_keys_and_timeout(
    clock: ManualClock, held: Purgatory
) -> None:
    value = held.try_complete_else_watch(DelayedValue[str](2), ["job 7", 8])
    clock.advance(3)
    assert value.state is EXPIRED
    with pytest.raises(TimeoutError, match=r"^no value came for 'job 7', 8 within 2.0 s$"):
        value.result()
    assert (held.statistics().expired, held.statistics().failed) == (1, 0)


async def test_a_value_of_a_closed_purgatory_says_that_it_was_closed() -> None:
    async with Purgatory() as purgatory:
        value = purgatory.try_complete_else_watch(DelayedValue[str](60), ["job 7"])
    with pytest.raises(TimeoutError, match=r"^no value came for 'job 7' before the purgatory was closed$"):
        await value


def test_a_value_may_wait_without_a_purgatory() -> None:
    value = DelayedValue[str](5)
    value.run()
    with pytest.raises(TimeoutError, match=r"^no value came within 5.0 s$"):
        value.result()


def test_a_value_is_freed_without_the_collector(held: Purgatory) -> None:
    class Value(DelayedValue[str]):
        """It has no slots, so that it takes a weak reference."""

    gc.disable()
    try:
        value = held.try_complete_else_watch(Value(60), ["job 7"])
        value.complete("done")
        gone = weakref.ref(value)
        del value
        assert gone() is None
    finally:
        gc.enable()


def test_a_class_may_derive_from_the_ready_made_ones(held: Purgatory) -> None:
    class Response(DelayedValue[str]):
        def __init__(self, request: int) -> None:
            super().__init__(60)
            self.request = request

        def on_complete(self) -> str:
            answered.append(self.request)
            return ""

    answered: list[int] = []
    response = held.try_complete_else_watch(Response(7), ["a"])
    response.complete("yes")
    assert (response.result(), answered) == ("yes", [7])


# DelayedQuorum


def quorum(held: Purgatory, needed: int, timeout: float | None = 60) -> DelayedQuorum[str]:
    return held.try_complete_else_watch(DelayedQuorum(needed, ["a", "b", "c"], timeout), ["write 1"])


async def test_awaiting_a_quorum_gives_those_that_acknowledged_in_order(purgatory: Purgatory) -> None:
    write = quorum(purgatory, 2)
    wait = asyncio.ensure_future(write)
    await asyncio.sleep(0)
    assert not write.acknowledge("c")
    assert (write.acknowledged, write.missing, write.done) == (("c",), ("a", "b"), False)
    assert write.acknowledge("a")
    assert await wait == ("c", "a")


def test_what_comes_after_the_end_is_noted_and_changes_no_result(held: Purgatory) -> None:
    write = quorum(held, 1)
    assert write.acknowledge("b")
    assert not write.acknowledge("a")
    assert (write.result(), write.acknowledged, write.missing) == (("b",), ("b", "a"), ("c",))


def test_who_acknowledges_twice_counts_once(held: Purgatory) -> None:
    write = quorum(held, 2)
    assert not write.acknowledge("b")
    assert not write.acknowledge("b")
    assert write.state is PENDING


def test_what_comes_before_the_offer_counts(held: Purgatory) -> None:
    write = DelayedQuorum(1, ["a", "b"], 60)
    assert not write.acknowledge("a")
    held.try_complete_else_watch(write, ["write 1"])
    assert (write.state, write.result()) == (COMPLETED, ("a",))


def test_a_quorum_that_is_not_reached_names_who_is_missing(clock: ManualClock, held: Purgatory) -> None:
    write = quorum(held, 3, timeout=0.5)
    write.acknowledge("b")
    clock.advance(1)
    assert write.state is EXPIRED
    message = r"^1 of 3 members acknowledged within 0.5 s, 3 are needed; missing: 'a', 'c'$"
    with pytest.raises(TimeoutError, match=message) as raised:
        write.result()
    assert isinstance(raised.value, QuorumTimedOut)
    assert (raised.value.missing, raised.value.refused) == (("a", "c"), ())
    assert (held.statistics().expired, held.statistics().failed) == (1, 0)


def test_a_quorum_without_time_and_without_a_key_expires_as_it_is_offered(held: Purgatory) -> None:
    write = held.try_complete_else_watch(DelayedQuorum(1, ["a"], -1))
    with pytest.raises(QuorumTimedOut, match=r"^0 of 1 members acknowledged within 0.0 s, 1 is needed"):
        write.result()


async def test_a_quorum_of_a_closed_purgatory_says_that_it_was_closed() -> None:
    async with Purgatory() as purgatory:
        write = quorum(purgatory, 2)
    message = "^0 of 3 members acknowledged before the purgatory was closed, 2 are needed"
    with pytest.raises(QuorumTimedOut, match=message):
        await write


async def test_a_quorum_fails_as_soon_as_too_few_members_are_left(purgatory: Purgatory) -> None:
    write = quorum(purgatory, 2)
    wait = asyncio.ensure_future(write)
    await asyncio.sleep(0)
    assert not write.refuse("c")
    assert (write.refused, write.missing, write.done) == (("c",), ("a", "b", "c"), False)
    assert write.refuse("b")
    message = r"^0 of 3 members acknowledged, 2 are needed; missing: 'a', 'b', 'c'; refused: 'c', 'b'$"
    with pytest.raises(QuorumNotReached, match=message) as raised:
        await wait
    # Nothing has timed out.
    assert not isinstance(raised.value, TimeoutError)
    assert (raised.value.missing, raised.value.refused) == (("a", "b", "c"), ("c", "b"))
    assert (write.state, purgatory.statistics().failed) == (FAILED, 1)
    assert not write.refuse("a")


def test_a_quorum_that_some_refuse_may_be_reached_by_the_others(held: Purgatory) -> None:
    write = quorum(held, 2)
    assert not write.refuse("a")
    assert not write.acknowledge("b")
    assert write.acknowledge("c")
    assert (write.result(), write.refused) == (("b", "c"), ("a",))


def test_the_latest_answer_of_a_member_counts(held: Purgatory) -> None:
    write = quorum(held, 2)
    assert not write.refuse("a")
    assert not write.acknowledge("a")
    assert (write.acknowledged, write.refused) == (("a",), ())
    assert not write.refuse("a")
    assert (write.acknowledged, write.refused, write.missing) == ((), ("a",), ("a", "b", "c"))
    assert not write.acknowledge("b")
    assert write.acknowledge("a")
    assert write.result() == ("b", "a")


def test_refusals_before_the_offer_count(held: Purgatory) -> None:
    write = DelayedQuorum(2, ["a", "b"], 60)
    assert not write.refuse("a")
    held.try_complete_else_watch(write)
    assert write.state is FAILED
    with pytest.raises(QuorumNotReached):
        write.result()


def test_a_timeout_names_those_that_have_refused(clock: ManualClock, held: Purgatory) -> None:
    write = quorum(held, 2, timeout=0.5)
    write.refuse("b")
    clock.advance(1)
    with pytest.raises(QuorumTimedOut, match=r"missing: 'a', 'b', 'c'; refused: 'b'$"):
        write.result()


@pytest.mark.parametrize("kind", [QuorumNotReached, QuorumTimedOut])
def test_the_error_of_a_quorum_can_be_pickled(kind: type[QuorumNotReached]) -> None:
    error = pickle.loads(pickle.dumps(kind("1 of 2", ("a", "b"), ("b",))))
    assert (type(error), str(error), error.missing, error.refused) == (kind, "1 of 2", ("a", "b"), ("b",))


@pytest.mark.parametrize("needed", [1.5, 1.0, True, "1", None])
def test_a_number_of_members_that_is_no_int_is_refused(needed: Any) -> None:
    with pytest.raises(TypeError, match=rf"^needed must be an int, not {re.escape(repr(needed))}$"):
        DelayedQuorum(needed, ["a", "b"], 60)


@pytest.mark.parametrize("members", ["abc", b"abc"])
def test_a_text_is_no_collection_of_members(members: Any) -> None:
    words = f"members must be a collection, not {members!r}: did you mean [{members!r}]?"
    with pytest.raises(TypeError, match=f"^{re.escape(words)}$"):
        DelayedQuorum(1, members, 5)


@pytest.mark.parametrize("needed", [-1, 0, 3])
def test_a_number_that_no_members_can_reach_is_refused(needed: int) -> None:
    with pytest.raises(ValueError, match=f"needed must be from 1 to the 2 members, not {needed}"):
        DelayedQuorum(needed, ["a", "b", "a"], 60)


def test_who_is_no_member_can_neither_acknowledge_nor_refuse(held: Purgatory) -> None:
    write = quorum(held, 3)
    for answer in (write.acknowledge, write.refuse):
        with pytest.raises(ValueError, match="'d' is no member"):
            answer("d")
    assert write.state is PENDING


# Session


class Callback:
    """Counts its calls, and may raise."""

    def __init__(self, raises: BaseException | None = None) -> None:
        self.calls = 0
        self.raises = raises

    def __call__(self) -> None:
        self.calls += 1
        if self.raises is not None:
            raise self.raises


def test_a_session_that_nobody_renews_calls_back_once(clock: ManualClock, held: Purgatory) -> None:
    offline = Callback()
    session = held.try_complete_else_watch(Session(30, offline))
    clock.advance(29)
    assert offline.calls == 0
    clock.advance(2)
    assert (offline.calls, session.state, session.timed_out) == (1, EXPIRED, True)
    clock.advance(60)
    assert (offline.calls, session.result(), session.renew()) == (1, None, False)


def test_renewing_gives_a_session_its_timeout_again(clock: ManualClock, held: Purgatory) -> None:
    offline = Callback()
    session = held.try_complete_else_watch(Session(30, offline))
    for _ in range(10):
        clock.advance(20)
        assert session.renew()
    clock.advance(29)
    assert offline.calls == 0
    clock.advance(2)
    assert offline.calls == 1


def test_a_session_that_is_cancelled_does_not_call_back(clock: ManualClock, held: Purgatory) -> None:
    offline = Callback()
    session = held.try_complete_else_watch(Session(30, offline))
    assert session.cancel()
    clock.advance(60)
    assert (offline.calls, session.renew()) == (0, False)


@pytest.mark.parametrize("cancel_pending", [False, True])
async def test_closing_reports_no_session(cancel_pending: bool) -> None:
    offline = Callback()
    purgatory = Purgatory()
    purgatory.start()
    session = purgatory.try_complete_else_watch(Session(30, offline))
    await purgatory.aclose(cancel_pending=cancel_pending)
    assert (offline.calls, session.done, session.timed_out) == (0, True, False)


def test_a_session_that_is_completed_does_not_call_back(held: Purgatory) -> None:
    offline = Callback()
    assert held.try_complete_else_watch(Session(30, offline)).force_complete()
    assert offline.calls == 0


# A TimeoutError of on_expiration would be an outcome like any other, which nobody reports.
@pytest.mark.parametrize("error", [OSError("full"), TimeoutError("slow"), asyncio.CancelledError()])
def test_a_callback_that_raises_fails_its_session_alone_and_is_reported(
    clock: ManualClock, held: Purgatory, error: BaseException
) -> None:
    broken = held.try_complete_else_watch(Session(30, Callback(error)))
    offline = Callback()
    held.try_complete_else_watch(Session(30, offline))
    with pytest.raises(ExceptionGroup) as raised:
        clock.advance(31)
    assert (broken.state, offline.calls, held.statistics().failed) == (FAILED, 1, 1)
    (reported,) = raised.value.exceptions
    assert error in (reported, reported.__cause__)


def test_an_async_callback_fails_its_session(clock: ManualClock, held: Purgatory) -> None:
    async def go_offline() -> None: ...

    session = held.try_complete_else_watch(Session(30, go_offline))
    with pytest.raises(ExceptionGroup):
        clock.advance(31)
    with pytest.raises(TypeError, match="must not be async: create a task in it"):
        session.result()


def test_a_session_without_a_timeout_never_calls_back(clock: ManualClock, held: Purgatory) -> None:
    offline = Callback()
    session = held.try_complete_else_watch(Session(None, offline))
    assert session.renew()
    clock.advance(1_000_000)
    assert offline.calls == 0


def test_a_session_without_time_calls_back_as_it_is_offered(held: Purgatory) -> None:
    offline = Callback()
    held.try_complete_else_watch(Session(0, offline))
    assert offline.calls == 1


@pytest.mark.parametrize("name", ["renew", "_callback"])
def test_a_class_that_overrides_a_name_of_the_session_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} overrides a name that belongs to the library"):
        type("Mine", (Session,), {name: None})
