"""A poll ends when its operation is done, its client disconnects, or its task is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any, NoReturn, cast

import anyio
import pytest

from purgatory import AsyncDelayedOperation, OperationState, Purgatory, PurgatoryClosed, PurgatoryFull
from purgatory.testing import VirtualTimeLoop
from purgatory.web import ClientDisconnected, PollWithdrawn, poll
from tests.operations import Gate, a_few_turns, raising
from tests.web.poll_client import DISCONNECT, REQUEST, Client, parked, until


def other_tasks() -> set[asyncio.Task[Any]]:
    """The tasks besides this one and the reapers."""
    tasks = asyncio.all_tasks() - {cast("asyncio.Task[Any]", asyncio.current_task())}
    return {task for task in tasks if not task.get_name().endswith("reaper")}


def polling(client: Client, purgatory: Purgatory, gate: Gate) -> asyncio.Task[str]:
    return asyncio.create_task(poll(client.receive, purgatory, gate, ["key"]))


async def test_the_result_is_what_on_complete_returned(purgatory: Purgatory) -> None:
    client, gate = Client(REQUEST), Gate(name="answer")
    task = polling(client, purgatory, gate)
    await parked(purgatory, client)
    gate.opened = True
    assert purgatory.check_and_complete("key") == 1
    assert await task == "answer"
    assert not client.receiving
    assert other_tasks() == set()


async def test_an_operation_that_completes_at_once_is_answered_without_receiving(
    purgatory: Purgatory,
) -> None:
    at_once = poll(Client(DISCONNECT).receive, purgatory, Gate(opened=True, name="at once"), ["key"])
    # Not even one turn of the loop.
    with pytest.raises(StopIteration) as ended:
        at_once.send(None)
    assert ended.value.value == "at once"
    assert other_tasks() == set()


async def test_a_timeout_returns_the_result_of_on_complete(virtual_time: VirtualTimeLoop) -> None:
    async with Purgatory() as purgatory:
        assert (
            await poll(Client(REQUEST).receive, purgatory, Gate(30, "nothing new"), ["key"]) == "nothing new"
        )
        assert 30 <= virtual_time.time() < 30.01
        assert purgatory.statistics().expired == 1


async def test_a_disconnection_withdraws_the_operation_at_once(purgatory: Purgatory) -> None:
    client, gate = Client(REQUEST), Gate()
    task = polling(client, purgatory, gate)
    await parked(purgatory, client)
    client.send(DISCONNECT)
    with pytest.raises(ClientDisconnected, match="has disconnected"):
        await task
    assert gate.ran == ["try_complete"]
    assert purgatory.statistics().cancelled == 1
    assert purgatory.statistics().pending == purgatory.statistics().keys == 0
    assert other_tasks() == set()


async def test_a_disconnection_cancels_the_evaluation_of_an_async_condition(purgatory: Purgatory) -> None:
    class Never(AsyncDelayedOperation[None]):
        async def condition(self) -> None:
            await asyncio.get_running_loop().create_future()

    client, operation = Client(REQUEST), Never(60)
    task = asyncio.create_task(poll(client.receive, purgatory, operation, ["key"]))
    await parked(purgatory, client)
    await a_few_turns()
    client.send(DISCONNECT)
    with pytest.raises(ClientDisconnected):
        await task
    assert operation.state is OperationState.CANCELLED
    await a_few_turns()
    assert other_tasks() == set()


async def test_an_earlier_disconnection_is_noticed(purgatory: Purgatory) -> None:
    with pytest.raises(ClientDisconnected):
        await poll(Client(DISCONNECT).receive, purgatory, Gate(), ["key"])
    assert purgatory.statistics().cancelled == 1


async def test_the_rest_of_the_body_is_dropped(purgatory: Purgatory) -> None:
    part = {"type": "http.request", "body": b"part", "more_body": True}
    client, gate = Client(part, part, REQUEST), Gate(name="answer")
    task = polling(client, purgatory, gate)
    await until(client.messages.empty)
    gate.force_complete()
    assert await task == "answer"


class Taking(Gate):
    """Counts how often it gives back what it took."""

    given_back = 0

    def on_unclaimed(self) -> None:
        self.given_back += 1


@pytest.mark.parametrize("first", ["completion", "departure"])
@pytest.mark.parametrize("how", ["disconnection", "cancellation"])
async def test_an_operation_that_completes_as_its_client_leaves_gives_back_what_it_took(
    purgatory: Purgatory, first: str, how: str
) -> None:
    client, gate = Client(REQUEST), Taking(name="answer")
    task = polling(client, purgatory, gate)
    await parked(purgatory, client)

    def leave() -> None:
        if how == "cancellation":
            task.cancel()
        else:
            client.send(DISCONNECT)

    for act in (gate.force_complete, leave) if first == "completion" else (leave, gate.force_complete):
        act()
    if (first, how) == ("completion", "disconnection"):
        # Nobody looks for a disconnection any more.
        assert await task == "answer"
        return
    with pytest.raises(ClientDisconnected if how == "disconnection" else asyncio.CancelledError):
        await task
    # A task that is cancelled before completes nothing.
    withdrawn = first == "departure" and how == "cancellation"
    assert gate.state is (OperationState.CANCELLED if withdrawn else OperationState.COMPLETED)
    assert gate.given_back == (0 if withdrawn else 1)
    assert other_tasks() == set()


async def test_an_operation_withdrawn_by_others_raises_poll_withdrawn(
    purgatory: Purgatory,
) -> None:
    client = Client(REQUEST)
    task = polling(client, purgatory, Gate())
    await parked(purgatory, client)
    purgatory.cancel_for_key("key")
    with pytest.raises(PollWithdrawn, match="was withdrawn"):
        await task
    assert other_tasks() == set()


async def test_an_operation_that_withdraws_itself_raises_poll_withdrawn(purgatory: Purgatory) -> None:
    gate = Gate()
    gate.trying = gate.cancel
    with pytest.raises(PollWithdrawn):
        await poll(Client().receive, purgatory, gate, ["key"])


async def test_exceptions_of_hooks_are_raised_at_once_and_after_a_wait(purgatory: Purgatory) -> None:
    client, gate = Client(REQUEST), Gate(completing=raising(ArithmeticError("broken")))
    with pytest.raises(ArithmeticError):
        await poll(client.receive, purgatory, Gate(opened=True, completing=gate.completing), ["key"])
    task = polling(client, purgatory, gate)
    await parked(purgatory, client)
    gate.force_complete()
    with pytest.raises(ArithmeticError):
        await task
    assert other_tasks() == set()


async def test_an_exception_of_receive_withdraws_the_operation_and_is_raised(purgatory: Purgatory) -> None:
    client = Client(REQUEST)
    task = polling(client, purgatory, Gate())
    await parked(purgatory, client)
    client.send(ConnectionError("the connection is broken"))
    with pytest.raises(ConnectionError):
        await task
    assert purgatory.statistics().cancelled == 1


async def test_a_receive_that_awaits_something_cancelled_raises_runtime_error(purgatory: Purgatory) -> None:
    job: asyncio.Future[MutableMapping[str, Any]] = asyncio.get_running_loop().create_future()

    async def receive() -> MutableMapping[str, Any]:
        return await job

    gate = Gate()
    task = asyncio.create_task(poll(receive, purgatory, gate, ["key"]))
    await until(lambda: purgatory.statistics().pending)
    job.cancel()
    with pytest.raises(RuntimeError, match=r"^receive raised CancelledError: something that it reads"):
        await task
    assert gate.state is OperationState.CANCELLED


@pytest.mark.parametrize("receiving", [False, True])
async def test_cancelling_the_task_withdraws_the_operation(purgatory: Purgatory, receiving: bool) -> None:
    client, gate = Client(REQUEST), Gate()
    task = polling(client, purgatory, gate)
    await until(lambda: client.receiving if receiving else purgatory.statistics().pending)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gate.state is OperationState.CANCELLED
    assert other_tasks() == set()


async def test_a_cancellation_wins_over_a_disconnection_in_the_same_turn(
    purgatory: Purgatory,
) -> None:
    client = Client(REQUEST)
    task = polling(client, purgatory, Gate())
    await parked(purgatory, client)
    client.send(DISCONNECT)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_task_cancelled_while_its_receiving_ends_is_cancelled(purgatory: Purgatory) -> None:
    client, gate = Client(REQUEST), Gate()
    task = polling(client, purgatory, gate)
    await parked(purgatory, client)
    gate.force_complete()
    # The task is interrupted in one turn, and stops receiving in the next.
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_poll_makes_no_task(purgatory: Purgatory) -> None:
    client, gate = Client(REQUEST), Gate()
    task = polling(client, purgatory, gate)
    await parked(purgatory, client)
    assert other_tasks() == {task}
    gate.force_complete()
    await task


async def test_a_receive_that_swallows_its_cancellation_is_not_called_again(purgatory: Purgatory) -> None:
    gate = Gate(name="answer")

    async def receive() -> MutableMapping[str, Any]:
        assert not gate.done
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return REQUEST
        raise AssertionError

    task = asyncio.create_task(poll(receive, purgatory, gate, ["key"]))
    await until(lambda: purgatory.statistics().pending)
    await asyncio.sleep(0)
    gate.force_complete()
    assert await task == "answer"
    assert not task.cancelling()


async def test_a_receive_during_which_the_operation_ends_is_not_called_again(purgatory: Purgatory) -> None:
    gate = Gate(name="answer")

    async def receive() -> MutableMapping[str, Any]:
        assert gate.force_complete()
        return REQUEST

    assert await poll(receive, purgatory, gate, ["key"]) == "answer"
    await a_few_turns()


async def test_another_task_that_awaits_the_operation_gets_the_same_result(purgatory: Purgatory) -> None:
    client, gate = Client(REQUEST), Gate(name="answer")
    task = polling(client, purgatory, gate)
    await parked(purgatory, client)
    gate.opened = True
    asyncio.get_running_loop().call_soon(purgatory.check_and_complete, "key")
    assert await gate == "answer"
    assert await task == "answer"


async def test_a_poll_can_be_cancelled_by_a_cancel_scope(virtual_time: VirtualTimeLoop) -> None:
    async with Purgatory() as purgatory:
        with anyio.move_on_after(5) as scope:
            await poll(Client(REQUEST).receive, purgatory, Gate(), ["key"])
        assert scope.cancelled_caught
        assert purgatory.statistics().cancelled == 1
        assert other_tasks() == set()


async def test_closing_the_purgatory_answers_its_polls(purgatory: Purgatory) -> None:
    client = Client(REQUEST)
    tasks = [polling(client, purgatory, Gate(name="empty")) for _ in range(3)]
    await until(lambda: purgatory.statistics().pending == 3)
    await purgatory.aclose()
    assert await asyncio.gather(*tasks) == ["empty"] * 3


async def test_a_refused_poll_leaves_no_task_behind() -> None:
    client = Client()
    async with Purgatory(max_pending=1) as purgatory:
        purgatory.try_complete_else_watch(Gate(), ["key"])
        with pytest.raises(PurgatoryFull):
            await poll(client.receive, purgatory, Gate(), ["key"])
        with pytest.raises(ValueError, match="key"):
            await poll(client.receive, purgatory, Gate(), [])
    with pytest.raises(PurgatoryClosed):
        await poll(client.receive, purgatory, Gate(), ["key"])
    assert other_tasks() == set()


async def test_a_disconnection_is_reported_even_if_the_repr_of_the_operation_raises(
    purgatory: Purgatory,
) -> None:
    class Nameless(Gate):
        def __repr__(self) -> NoReturn:
            raise AttributeError("name")

    with pytest.raises(ClientDisconnected, match="Nameless"):
        await poll(Client(DISCONNECT).receive, purgatory, Nameless(), ["key"])
