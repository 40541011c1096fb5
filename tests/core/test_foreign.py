"""A CancelledError of code of others is told apart from a cancellation of the task that runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio
import pytest

from purgatory._cancellation import Foreign, part
from tests.operations import Stop, raising


@pytest.fixture
async def job() -> asyncio.Future[None]:
    """Something that was cancelled elsewhere."""
    job = asyncio.get_running_loop().create_future()
    job.cancel()
    return job


async def test_what_reads_or_awaits_something_cancelled_raises_runtime_error(
    job: asyncio.Future[None],
) -> None:
    message = "the job raised CancelledError: something that it reads was cancelled"
    with pytest.raises(RuntimeError, match=message) as caught, Foreign("the job"):
        await job
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)
    with pytest.raises(RuntimeError, match=message), Foreign("the job"):
        job.result()


async def test_a_part_of_a_task_group_that_reads_something_cancelled_ends_with_an_error(
    job: asyncio.Future[None],
) -> None:
    async def read(job: asyncio.Future[None]) -> None:
        await job

    with pytest.raises(ExceptionGroup) as caught:
        async with anyio.create_task_group() as group:
            group.start_soon(part, "the part", read, job)
    assert [str(error)[:32] for error in caught.value.exceptions] == ["the part raised CancelledError: "]


@pytest.mark.parametrize("error", [ValueError("no"), StopIteration(), StopAsyncIteration(), Stop("stop")])
async def test_another_error_is_raised_as_it_is(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, Foreign("the job"):
        raising(error)()
    assert caught.value is error


def cancel_task(scope: anyio.CancelScope, task: asyncio.Task[None]) -> None:
    task.cancel()


def cancel_scope(scope: anyio.CancelScope, task: asyncio.Task[None]) -> None:
    scope.cancel()


@pytest.mark.parametrize("cancel", [cancel_task, cancel_scope])
async def test_a_cancellation_of_the_task_is_raised_as_it_is(
    cancel: Callable[[anyio.CancelScope, asyncio.Task[None]], None],
) -> None:
    scope, raised = anyio.CancelScope(), list[BaseException]()

    async def wait() -> None:
        with scope:
            try:
                with Foreign("the job"):
                    await asyncio.Event().wait()
            except BaseException as error:
                raised.append(error)
                raise

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    cancel(scope, waiting)
    await asyncio.wait([waiting])
    assert [type(error) for error in raised] == [asyncio.CancelledError]
    assert waiting.cancelled() is (cancel is cancel_task)
