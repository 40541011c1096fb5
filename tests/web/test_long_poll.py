"""A poll ends with its operation, with its client, or with its task, whichever comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any, NoReturn, cast

import anyio
import httpx
import pytest
from fastapi import FastAPI
from fastapi import Request as FastAPIRequest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from purgatory import OperationState, Purgatory, PurgatoryClosed, PurgatoryFull
from purgatory.errors import PurgatoryNotOpen
from purgatory.testing import VirtualTimeLoop
from purgatory.web import ClientDisconnected, PollWithdrawn, long_poll, poll
from tests.operations import Gate, raising

REQUEST = {"type": "http.request", "body": b"", "more_body": False}
DISCONNECT = {"type": "http.disconnect"}


class Client:
    """The server's end of a client: what it says is received in turn, then nothing until it says more."""

    def __init__(self, *said: MutableMapping[str, Any]) -> None:
        self.said: asyncio.Queue[MutableMapping[str, Any] | Exception] = asyncio.Queue()
        self.listening = 0
        for message in said:
            self.says(message)

    def says(self, message: MutableMapping[str, Any] | Exception) -> None:
        self.said.put_nowait(message)

    async def receive(self) -> MutableMapping[str, Any]:
        self.listening += 1
        try:
            message = await self.said.get()
        finally:
            self.listening -= 1
        if isinstance(message, Exception):
            raise message
        return message


def others() -> set[asyncio.Task[Any]]:
    """The tasks besides this one and the reapers."""
    tasks = asyncio.all_tasks() - {cast("asyncio.Task[Any]", asyncio.current_task())}
    return {task for task in tasks if not task.get_name().endswith("reaper")}


async def until(condition: Callable[[], object]) -> None:
    for _ in range(100):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it does not come true")


async def parked(purgatory: Purgatory, client: Client) -> None:
    """Returns when an operation waits there and somebody listens to its client."""
    await until(lambda: purgatory.statistics().pending and client.listening)


def polling(client: Client, purgatory: Purgatory, gate: Gate) -> asyncio.Task[str]:
    return asyncio.create_task(poll(client.receive, purgatory, gate, ["key"]))


async def test_the_result_is_what_on_complete_returned(purgatory: Purgatory) -> None:
    client, gate = Client(REQUEST), Gate(name="answer")
    task = polling(client, purgatory, gate)
    await parked(purgatory, client)
    gate.opened = True
    assert purgatory.check_and_complete("key") == 1
    assert await task == "answer"
    assert not client.listening
    assert others() == set()


async def test_what_need_not_wait_is_answered_without_listening(purgatory: Purgatory) -> None:
    at_once = poll(Client(DISCONNECT).receive, purgatory, Gate(opened=True, name="at once"), ["key"])
    # Not even one turn of the loop.
    with pytest.raises(StopIteration) as ended:
        at_once.send(None)
    assert ended.value.value == "at once"
    assert others() == set()


async def test_the_timeout_gives_the_operations_own_answer(virtual_time: VirtualTimeLoop) -> None:
    async with Purgatory() as purgatory:
        assert (
            await poll(Client(REQUEST).receive, purgatory, Gate(30, "nothing new"), ["key"]) == "nothing new"
        )
        assert 30 <= virtual_time.time() < 30.01
        assert purgatory.statistics().expired == 1


async def test_a_client_that_leaves_withdraws_its_operation_at_once(purgatory: Purgatory) -> None:
    client, gate = Client(REQUEST), Gate()
    task = polling(client, purgatory, gate)
    await parked(purgatory, client)
    client.says(DISCONNECT)
    with pytest.raises(ClientDisconnected, match="has left"):
        await task
    assert gate.ran == ["try_complete"]
    assert purgatory.statistics().cancelled == 1
    assert purgatory.statistics().pending == purgatory.statistics().keys == 0
    assert others() == set()


async def test_a_client_that_has_left_already_is_noticed(purgatory: Purgatory) -> None:
    with pytest.raises(ClientDisconnected):
        await poll(Client(DISCONNECT).receive, purgatory, Gate(), ["key"])
    assert purgatory.statistics().cancelled == 1


async def test_the_rest_of_the_body_is_dropped(purgatory: Purgatory) -> None:
    part = {"type": "http.request", "body": b"part", "more_body": True}
    client, gate = Client(part, part, REQUEST), Gate(name="answer")
    task = polling(client, purgatory, gate)
    await until(client.said.empty)
    gate.force_complete()
    assert await task == "answer"


async def test_of_a_completion_and_a_departure_in_one_turn_the_completion_counts(
    purgatory: Purgatory,
) -> None:
    client, gate = Client(REQUEST), Gate(name="answer")
    task = polling(client, purgatory, gate)
    await parked(purgatory, client)
    client.says(DISCONNECT)
    gate.force_complete()
    assert await task == "answer"
    assert others() == set()


async def test_an_operation_that_others_withdraw_is_not_taken_for_a_cancelled_task(
    purgatory: Purgatory,
) -> None:
    client = Client(REQUEST)
    task = polling(client, purgatory, Gate())
    await parked(purgatory, client)
    purgatory.cancel_for_key("key")
    with pytest.raises(PollWithdrawn, match="was withdrawn"):
        await task
    assert others() == set()


async def test_an_operation_may_withdraw_itself_when_it_is_tried(purgatory: Purgatory) -> None:
    gate = Gate()
    gate.trying = gate.cancel
    with pytest.raises(PollWithdrawn):
        await poll(Client().receive, purgatory, gate, ["key"])


async def test_what_a_hook_raises_goes_up_when_parking_and_later(purgatory: Purgatory) -> None:
    client, gate = Client(REQUEST), Gate(completing=raising(ArithmeticError("broken")))
    with pytest.raises(ArithmeticError):
        await poll(client.receive, purgatory, Gate(opened=True, completing=gate.completing), ["key"])
    task = polling(client, purgatory, gate)
    await parked(purgatory, client)
    gate.force_complete()
    with pytest.raises(ArithmeticError):
        await task
    assert others() == set()


async def test_what_receive_raises_withdraws_the_operation_and_goes_up(purgatory: Purgatory) -> None:
    client = Client(REQUEST)
    task = polling(client, purgatory, Gate())
    await parked(purgatory, client)
    client.says(ConnectionError("the server cannot hear"))
    with pytest.raises(ConnectionError):
        await task
    assert purgatory.statistics().cancelled == 1


@pytest.mark.parametrize("listening", [False, True])
async def test_cancelling_the_task_withdraws_the_operation(purgatory: Purgatory, listening: bool) -> None:
    client, gate = Client(REQUEST), Gate()
    task = polling(client, purgatory, gate)
    await until(lambda: client.listening if listening else purgatory.statistics().pending)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gate.state is OperationState.CANCELLED
    assert others() == set()


async def test_a_cancelled_task_is_cancelled_even_if_its_client_leaves_in_the_same_turn(
    purgatory: Purgatory,
) -> None:
    client = Client(REQUEST)
    task = polling(client, purgatory, Gate())
    await parked(purgatory, client)
    client.says(DISCONNECT)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_task_cancelled_while_its_listening_ends_is_cancelled(purgatory: Purgatory) -> None:
    client, gate = Client(REQUEST), Gate()
    task = polling(client, purgatory, gate)
    await parked(purgatory, client)
    gate.force_complete()
    # In one turn the task is interrupted; in the next it stops listening.
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_poll_waits_without_a_task_of_its_own(purgatory: Purgatory) -> None:
    client, gate = Client(REQUEST), Gate()
    task = polling(client, purgatory, gate)
    await parked(purgatory, client)
    assert others() == {task}
    gate.force_complete()
    await task


async def test_a_receive_that_swallows_its_cancellation_is_not_asked_again(purgatory: Purgatory) -> None:
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


async def test_who_else_awaits_it_gets_the_same_answer(purgatory: Purgatory) -> None:
    client, gate = Client(REQUEST), Gate(name="answer")
    task = polling(client, purgatory, gate)
    await parked(purgatory, client)
    gate.opened = True
    asyncio.get_running_loop().call_soon(purgatory.check_and_complete, "key")
    assert await gate == "answer"
    assert await task == "answer"


async def test_it_can_be_cancelled_by_a_scope(virtual_time: VirtualTimeLoop) -> None:
    async with Purgatory() as purgatory:
        with anyio.move_on_after(5) as scope:
            await poll(Client(REQUEST).receive, purgatory, Gate(), ["key"])
        assert scope.cancelled_caught
        assert purgatory.statistics().cancelled == 1
        assert others() == set()


async def test_a_closing_purgatory_answers(purgatory: Purgatory) -> None:
    client = Client(REQUEST)
    tasks = [polling(client, purgatory, Gate(name="empty")) for _ in range(3)]
    await until(lambda: purgatory.statistics().pending == 3)
    await purgatory.aclose()
    assert await asyncio.gather(*tasks) == ["empty"] * 3


async def test_nothing_listens_for_a_poll_that_is_refused() -> None:
    client = Client()
    async with Purgatory(max_pending=1) as purgatory:
        purgatory.try_complete_else_watch(Gate(), ["key"])
        with pytest.raises(PurgatoryFull):
            await poll(client.receive, purgatory, Gate(), ["key"])
        with pytest.raises(ValueError, match="key"):
            await poll(client.receive, purgatory, Gate(), [])
    with pytest.raises(PurgatoryClosed):
        await poll(client.receive, purgatory, Gate(), ["key"])
    assert others() == set()


async def test_a_departure_is_told_whatever_the_repr_of_the_operation_does(purgatory: Purgatory) -> None:
    class Nameless(Gate):
        def __repr__(self) -> NoReturn:
            raise AttributeError("name")

    with pytest.raises(ClientDisconnected, match="Nameless"):
        await poll(Client(DISCONNECT).receive, purgatory, Nameless(), ["key"])


# For Starlette and FastAPI


async def test_a_purgatory_that_nobody_has_opened_is_no_matter_of_trying_again() -> None:
    with pytest.raises(PurgatoryNotOpen, match="start"):
        await long_poll(Request({"type": "http"}, Client().receive), Purgatory(), Gate(), ["key"])


@pytest.mark.parametrize("error", [PurgatoryFull("another"), PurgatoryClosed("another")])
async def test_what_a_hook_met_with_elsewhere_is_its_own(purgatory: Purgatory, error: Exception) -> None:
    with pytest.raises(type(error), match="another"):
        await long_poll(
            Request({"type": "http"}, Client().receive), purgatory, Gate(trying=raising(error)), ["key"]
        )


async def test_a_departure_is_an_exception_that_starlette_answers() -> None:
    async with Purgatory() as purgatory:
        with pytest.raises(HTTPException) as raised:
            await long_poll(Request({"type": "http"}, Client(DISCONNECT).receive), purgatory, Gate(), ["key"])
    assert raised.value.status_code == 499
    assert isinstance(raised.value.__cause__, ClientDisconnected)


def starlette_app(purgatory: Purgatory) -> Starlette:
    async def topic(request: Request) -> Response:
        return PlainTextResponse(await long_poll(request, purgatory, Gate(0.01, "nothing"), ["key"]))

    async def pass_on(request: Request, call_next: Any) -> Any:
        return await call_next(request)

    return Starlette(
        routes=[Route("/", topic)], middleware=[Middleware(BaseHTTPMiddleware, dispatch=pass_on)]
    )


def fastapi_app(purgatory: Purgatory) -> FastAPI:
    app = FastAPI()

    @app.get("/")
    async def topic(request: FastAPIRequest) -> PlainTextResponse:
        return PlainTextResponse(await long_poll(request, purgatory, Gate(0.01, "nothing"), ["key"]))

    return app


@pytest.mark.parametrize("application", [starlette_app, fastapi_app])
async def test_a_refused_poll_is_a_503_with_retry_after(application: Any) -> None:
    async with Purgatory(max_pending=1) as purgatory:
        transport = httpx.ASGITransport(application(purgatory))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            answered = await client.get("/")
            assert (answered.status_code, answered.text) == (200, "nothing")
            gate = purgatory.try_complete_else_watch(Gate(), ["key"])
            full = await client.get("/")
            assert (full.status_code, full.headers["Retry-After"]) == (503, "1")
            gate.cancel()
            await purgatory.aclose()
            closed = await client.get("/")
            assert (closed.status_code, closed.headers["Retry-After"]) == (503, "1")


async def test_a_poll_withdrawn_by_others_is_a_503(purgatory: Purgatory) -> None:
    client = Client(REQUEST)
    task = asyncio.create_task(
        long_poll(Request({"type": "http"}, client.receive), purgatory, Gate(), ["key"])
    )
    await parked(purgatory, client)
    purgatory.cancel_for_key("key")
    with pytest.raises(HTTPException) as raised:
        await task
    assert raised.value.status_code == 503
