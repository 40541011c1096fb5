"""No permit is lost: an operation that was completed for a task that never got the result gives it back."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

import anyio
import pytest

from purgatory import AsyncDelayedOperation, DelayedOperation, DelayedValue, OperationWithdrawn, Purgatory
from purgatory._core.waiting import abandon, claim, future_for, wake_when_done
from tests.operations import Gate, Stop, a_few_turns


class Pool:
    """Connections that are handed out in the order of the requests."""

    def __init__(self, purgatory: Purgatory, size: int) -> None:
        self.purgatory = purgatory
        self.free = deque(range(size))

    def request(self, timeout: float | None = None) -> Request:
        return self.purgatory.try_complete_else_watch(Request(self, timeout), ["free"])

    def give_back(self, connection: int) -> None:
        self.free.append(connection)
        self.purgatory.check_and_complete("free", limit=1)


class Request(DelayedOperation[int | None]):
    """Waits until a connection is free, and takes it. None when the time is over."""

    def __init__(self, pool: Pool, timeout: float | None) -> None:
        super().__init__(timeout)
        self.pool = pool
        self.unclaimed: list[asyncio.Task[Any] | None] = []
        self.raising: BaseException | None = None

    def try_complete(self) -> bool:
        return len(self.pool.free) > 0 and self.force_complete()

    def on_complete(self) -> int | None:
        return None if self.expired else self.pool.free.popleft()

    def on_unclaimed(self) -> None:
        self.unclaimed.append(asyncio.current_task())
        connection = self.result()
        assert connection is not None
        self.pool.give_back(connection)
        if self.raising is not None:
            raise self.raising


@pytest.fixture
async def pool(purgatory: Purgatory) -> Pool:
    pool = Pool(purgatory, 1)
    # Nothing is free at first.
    pool.free.clear()
    return pool


async def get(request: Request) -> int | None:
    return await request


async def started(awaitable: Awaitable[Any]) -> asyncio.Task[Any]:
    async def wait() -> Any:
        return await awaitable

    task = asyncio.create_task(wait())
    await a_few_turns()
    return task


async def test_a_permit_goes_to_the_next_in_line_when_the_first_was_cancelled_before(pool: Pool) -> None:
    ada, bob = pool.request(), pool.request()
    waiting = [await started(get(request)) for request in (ada, bob)]
    waiting[0].cancel()
    pool.give_back(7)
    assert await waiting[1] == 7
    assert waiting[0].cancelled()
    assert (ada.unclaimed, bob.unclaimed) == ([], [])


async def test_a_permit_goes_to_the_next_in_line_when_the_first_is_cancelled_afterwards(pool: Pool) -> None:
    ada, bob = pool.request(), pool.request()
    waiting = [await started(get(request)) for request in (ada, bob)]
    pool.give_back(7)
    waiting[0].cancel()
    assert await waiting[1] == 7
    assert waiting[0].cancelled()
    assert ada.unclaimed == [waiting[0]]
    with pytest.raises(OperationWithdrawn, match="Request was completed, and then gave back what it took"):
        ada.result()


async def test_a_result_that_one_of_several_tasks_gets_is_claimed(pool: Pool) -> None:
    for cancelled in ([0], [1], [0, 2]):
        request = pool.request()
        waiting = [await started(get(request)) for _ in range(3)]
        pool.give_back(7)
        for place in cancelled:
            waiting[place].cancel()
        await asyncio.wait(waiting)
        assert [task.cancelled() for task in waiting].count(True) == len(cancelled)
        assert request.unclaimed == []
        assert not pool.free


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_task_that_finds_the_result_there_has_claimed_it(pool: Pool, kind: str) -> None:
    class Looking(Asking):
        async def condition(self) -> bool:
            return False

    # An eager task would begin before there is a result.
    asyncio.get_running_loop().set_task_factory(None)
    request = Request(pool, None) if kind == "plain" else Looking(pool)
    pool.purgatory.try_complete_else_watch(request, ["free"])
    waiting = await started(request)

    async def wait() -> int | None:
        return await request

    late = asyncio.create_task(wait())
    pool.free.append(7)
    request.force_complete()
    waiting.cancel()
    await asyncio.wait([waiting, late])
    assert late.result() == 7
    assert not request.unclaimed
    assert not pool.free


async def test_when_all_of_several_tasks_are_cancelled_the_last_one_gives_the_result_back(pool: Pool) -> None:
    request = pool.request()
    waiting = [await started(get(request)) for _ in range(3)]
    pool.give_back(7)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    assert len(request.unclaimed) == 1
    assert pool.free == deque([7])


async def test_some_tasks_that_are_cancelled_before_and_the_others_afterwards_give_it_back_once(
    pool: Pool,
) -> None:
    request = pool.request()
    waiting = [await started(get(request)) for _ in range(3)]
    waiting[1].cancel()
    pool.give_back(7)
    waiting[0].cancel()
    waiting[2].cancel()
    await asyncio.wait(waiting)
    assert len(request.unclaimed) == 1
    assert pool.free == deque([7])


async def test_an_operation_that_nobody_awaits_keeps_what_it_took(pool: Pool) -> None:
    request = pool.request()
    pool.give_back(7)
    await a_few_turns()
    assert request.unclaimed == []
    assert await request == 7


async def test_a_task_that_is_cancelled_before_it_awaits_does_not_count(pool: Pool) -> None:
    asyncio.get_running_loop().set_task_factory(None)
    request = pool.request()
    task = asyncio.create_task(get(request))
    task.cancel()
    pool.give_back(7)
    await asyncio.wait([task])
    assert request.unclaimed == []
    assert await request == 7


async def test_an_expired_and_a_failed_operation_took_nothing(pool: Pool) -> None:
    expired, failed = pool.request(60), pool.request()
    waiting = [await started(get(request)) for request in (expired, failed)]
    expired.reschedule(0)
    failed.fail(ValueError("bad"))
    for task in waiting:
        task.cancel()
    with pytest.raises(ValueError, match="bad"):
        failed.result()
    await asyncio.wait(waiting)
    assert expired.unclaimed == failed.unclaimed == []


async def test_shield_claims_the_result_in_a_task_of_its_own(pool: Pool) -> None:
    request = pool.request()
    inner = asyncio.ensure_future(request)
    waiting = await started(asyncio.shield(inner))
    pool.give_back(7)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert await inner == 7
    assert request.unclaimed == []


async def test_gather_gives_back_what_its_children_did_not_get(pool: Pool) -> None:
    requests = [pool.request(), pool.request()]
    waiting = await started(asyncio.gather(*requests))
    pool.give_back(7)
    pool.give_back(8)
    waiting.cancel()
    await asyncio.wait([waiting])
    await a_few_turns()
    assert [len(request.unclaimed) for request in requests] == [1, 1]
    assert sorted(pool.free) == [7, 8]


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize("cancelled", ["before", "afterwards"])
@pytest.mark.parametrize("around", ["timeout", "wait_for", "move_on_after", "fail_after", "task group"])
async def test_a_timeout_around_the_wait_loses_nothing(pool: Pool, around: str, cancelled: str) -> None:
    loop = asyncio.get_running_loop()
    request = pool.request()

    async def wait() -> int | None:
        # The timeout is over in the same turn of the loop in which the connection comes back.
        match around:
            case "timeout":
                async with asyncio.timeout(0.01):
                    return await request
            case "wait_for":
                return await asyncio.wait_for(request, 0.01)
            case "move_on_after":
                with anyio.move_on_after(0.01):
                    return await request
            case "fail_after":
                with anyio.fail_after(0.01):
                    return await request
            case _:
                async with anyio.create_task_group() as tasks:
                    loop.call_later(0.01, tasks.cancel_scope.cancel)
                    return await request
        return None

    if cancelled == "before":
        waiting = asyncio.create_task(wait())
        await a_few_turns()
        loop.call_later(0.01, pool.give_back, 7)
    else:
        loop.call_later(0.01, pool.give_back, 7)
        waiting = asyncio.create_task(wait())
    with suppress(TimeoutError):
        got = await waiting
        if got is not None:
            pool.give_back(got)
    await a_few_turns()
    assert pool.free == deque([7])


async def test_a_coroutine_that_is_closed_gives_back_what_it_did_not_get(pool: Pool) -> None:
    request = pool.request()
    coroutine = get(request)
    coroutine.send(None)
    pool.give_back(7)
    coroutine.close()
    assert len(request.unclaimed) == 1
    assert pool.free == deque([7])


@pytest.mark.parametrize("own", [True, False], ids=["its own hook", "another hook"])
async def test_a_coroutine_that_a_hook_closes_gives_back_when_its_operation_has_ended(
    pool: Pool, own: bool
) -> None:
    class Closing(Request):
        def on_complete(self) -> int | None:
            taken = super().on_complete()
            coroutine.close()
            return taken

    def complete_and_close() -> None:
        request.force_complete()
        coroutine.close()

    request = (Closing if own else Request)(pool, None)
    coroutine = get(pool.purgatory.try_complete_else_watch(request, ["free"]))
    coroutine.send(None)
    if own:
        pool.give_back(7)
    else:
        pool.free.append(7)
        pool.purgatory.try_complete_else_watch(Gate(opened=True, completing=complete_and_close), ["other"])
    assert request.unclaimed == []
    await a_few_turns()
    assert len(request.unclaimed) == 1
    assert pool.free == deque([7])
    with pytest.raises(OperationWithdrawn):
        request.result()


async def test_what_was_completed_before_closing_is_given_back_while_the_purgatory_closes() -> None:
    async with Purgatory() as purgatory:
        pool = Pool(purgatory, 0)
        request = pool.request()
        waiting = await started(get(request))
        pool.give_back(7)
        waiting.cancel()
    await asyncio.wait([waiting])
    assert len(request.unclaimed) == 1
    assert pool.free == deque([7])


async def test_a_task_that_a_hook_cancels_gives_the_result_back(pool: Pool) -> None:
    class Cancelling(Request):
        def on_complete(self) -> int | None:
            waiting.cancel()
            return super().on_complete()

    request = pool.purgatory.try_complete_else_watch(Cancelling(pool, None), ["free"])
    waiting = await started(get(request))
    pool.give_back(7)
    await asyncio.wait([waiting])
    assert request.unclaimed == [waiting]


async def test_a_task_that_its_own_condition_cancels_gets_nothing_and_nothing_is_taken(pool: Pool) -> None:
    class Cancelling(Request):
        def try_complete(self) -> bool:
            if self.pool.free:
                waiting.cancel()
            return super().try_complete()

    request = pool.purgatory.try_complete_else_watch(Cancelling(pool, None), ["free"])
    waiting = await started(get(request))
    pool.give_back(7)
    await asyncio.wait([waiting])
    assert pool.free == deque([7])
    assert pool.purgatory.statistics().cancelled == 1


async def test_a_sweep_passes_by_those_whose_tasks_were_cancelled(pool: Pool) -> None:
    requests = [pool.request() for _ in range(3)]
    waiting = [await started(get(request)) for request in requests]
    waiting[0].cancel()
    pool.free += [7, 8]
    assert await pool.purgatory.sweep("free") == 2
    assert await asyncio.gather(*waiting[1:]) == [7, 8]


async def test_an_error_of_on_unclaimed_is_reported_and_the_cancellation_goes_on(
    pool: Pool, reported: list[dict[str, Any]]
) -> None:
    for error in (ValueError("bad"), asyncio.CancelledError()):
        request = pool.request()
        request.raising = error
        waiting = await started(get(request))
        pool.give_back(7)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        assert pool.free.popleft() == 7
    assert [type(context["exception"]) for context in reported] == [ValueError, RuntimeError]
    assert "could not give back what it took" in reported[0]["message"]


async def test_an_interruption_of_on_unclaimed_is_raised(pool: Pool) -> None:
    request = pool.request()
    request.raising = Stop("now")
    coroutine = get(request)
    coroutine.send(None)
    pool.give_back(7)
    with pytest.raises(Stop):
        coroutine.throw(asyncio.CancelledError())
    assert len(request.unclaimed) == 1


async def test_an_end_that_was_put_off_is_finished_before_its_task_gives_it_back(pool: Pool) -> None:
    request = pool.request()
    coroutine = get(request)
    coroutine.send(None)

    class Interrupting(DelayedOperation[None]):
        def try_complete(self) -> bool:
            return False

        def on_complete(self) -> None:
            # The end of the request is decided, and its hooks have to wait. Then this raises.
            pool.free.append(7)
            request.force_complete()
            raise Stop("now")

    interrupting = pool.purgatory.try_complete_else_watch(Interrupting(None), ["other"])
    with pytest.raises(Stop):
        interrupting.force_complete()
    assert request.unclaimed == []
    with pytest.raises(asyncio.CancelledError):
        coroutine.throw(asyncio.CancelledError())
    assert len(request.unclaimed) == 1
    assert pool.free == deque([7])


class Handover(DelayedValue[int]):
    """A value that is given back to a list."""

    def __init__(self, left: list[int]) -> None:
        super().__init__(None)
        self.left = left

    def on_unclaimed(self) -> None:
        self.left.append(self.result())


async def test_a_value_that_nobody_got_is_given_back_by_a_subclass(purgatory: Purgatory) -> None:
    left: list[int] = []
    handover = purgatory.try_complete_else_watch(Handover(left), ["a"])
    waiting = await started(handover)
    assert handover.complete(7)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert left == [7]


async def test_without_the_hook_the_result_stays(purgatory: Purgatory) -> None:
    value = purgatory.try_complete_else_watch(DelayedValue[int](None), ["a"])
    waiting = await started(value)
    assert value.complete(7)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert await value == 7


class Asking(AsyncDelayedOperation[int]):
    """Takes a connection as soon as the condition holds."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(None)
        self.pool = pool
        self.leave = asyncio.Event()
        # The evaluation takes so many turns of the loop to end.
        self.turns = 2
        self.unclaimed = 0
        self.waiting: asyncio.Task[Any] | None = None

    async def condition(self) -> bool:
        try:
            await self.leave.wait()
        finally:
            for _ in range(self.turns):
                await asyncio.sleep(0)
        return True

    def on_complete(self) -> int:
        if self.waiting is not None:
            self.waiting.cancel()
        return self.pool.free.popleft()

    def on_unclaimed(self) -> None:
        self.unclaimed += 1


@pytest.mark.parametrize("by", ["its condition", "somebody else"])
async def test_an_async_condition_gives_back_what_nobody_got(pool: Pool, by: str) -> None:
    pool.free.append(7)
    asking = pool.purgatory.try_complete_else_watch(Asking(pool), ["free"])
    waiting = await started(asking)
    if by == "its condition":
        asking.waiting = waiting
        asking.leave.set()
    else:
        asking.force_complete()
        # The task has woken, and waits for the end of the evaluation.
        await asyncio.sleep(0)
        waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert asking.unclaimed == 1


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize("seed", range(5))
async def test_a_pool_under_random_cancellations_and_timeouts_keeps_its_permits(seed: int) -> None:
    chance = random.Random(seed)
    size = 4

    async def use(pool: Pool, held: set[int]) -> None:
        connection = None
        with suppress(TimeoutError):
            async with asyncio.timeout(chance.choice([0.001, 0.002, 0.005, 1])):
                connection = await pool.request(chance.choice([0.002, 0.01, None]))
        if connection is None:
            return
        assert connection not in held
        held.add(connection)
        try:
            await asyncio.sleep(chance.choice([0, 0.001, 0.003]))
        finally:
            held.remove(connection)
            pool.give_back(connection)

    async with Purgatory() as purgatory:
        pool = Pool(purgatory, size)
        held: set[int] = set()
        users: list[asyncio.Task[None]] = []
        for _ in range(2_000):
            users.append(asyncio.create_task(use(pool, held)))
            if chance.random() < 0.3:
                await asyncio.sleep(chance.choice([0, 0, 0.001]))
            if chance.random() < 0.4:
                chance.choice(users[-20:]).cancel()
        await asyncio.wait(users)
        assert sorted(pool.free) == list(range(size))
        assert purgatory.statistics().pending == 0
    assert any(user.cancelled() for user in users)


async def test_a_task_that_waits_for_the_end_of_the_evaluation_only_claims_the_result_too(pool: Pool) -> None:
    pool.free.append(7)
    asking = pool.purgatory.try_complete_else_watch(Asking(pool), ["free"])
    asking.turns = 10
    first = await started(asking)
    asking.force_complete()
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    # Both wait for the end of the evaluation now, and the first one is told of it first.
    second = asyncio.create_task(wait(asking))
    assert await second == 7
    assert first.cancelled()
    assert await asking == 7
    assert asking.unclaimed == 0


async def test_an_async_operation_that_was_never_offered_and_is_withdrawn_says_so(pool: Pool) -> None:
    asking = Asking(pool)
    asking.cancel()
    with pytest.raises(OperationWithdrawn):
        await asking


async def test_a_task_that_leaves_after_another_has_claimed_the_result_gives_nothing_back(pool: Pool) -> None:
    request = pool.request()
    waiter = future_for(request)
    wake_when_done(request, waiter)
    pool.give_back(7)
    claim(request)
    abandon(request, waiter)
    assert request.unclaimed == []
    assert not pool.free


async def wait(asking: Asking) -> int:
    return await asking


async def test_a_limited_check_that_chose_a_cancelled_wait_goes_on_to_the_next_one(
    purgatory: Purgatory,
) -> None:
    free: list[int] = []
    ada, bob = (asyncio.create_task(purgatory.wait_until(lambda: list(free), ["free"])) for _ in range(2))
    await a_few_turns()
    free.append(7)
    assert purgatory.check_and_complete("free", limit=1) == 1
    ada.cancel()
    assert await bob == [7]
    assert ada.cancelled()
