"""On docs/how-to/bugs-you-need-not-write.md, the usual code fails, and the code with a purgatory does not."""

from __future__ import annotations

import asyncio
import re
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from itertools import count
from types import ModuleType
from typing import Any, TypeVar, TypeVarTuple

import pytest

from purgatory import Purgatory
from purgatory.testing import VirtualTimeLoop
from tests.docs.programs import BUGS, BUGS_MODULE

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

page: Any = ModuleType("bugs_you_need_not_write")
exec(compile(BUGS_MODULE, "bugs_you_need_not_write.py", "exec"), page.__dict__)

pytestmark = pytest.mark.usefixtures("tasks")


def run(scenario: Coroutine[Any, Any, T], loop_factory: Callable[[], VirtualTimeLoop] = VirtualTimeLoop) -> T:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(scenario)


async def turn() -> None:
    """Let all tasks run until they wait."""
    for _ in range(3):
        await asyncio.sleep(0)


def test_every_situation_names_a_public_report_and_has_both_codes() -> None:
    situations = re.split(r"^## ", BUGS.read_text(), flags=re.MULTILINE)[1:]

    assert len(situations) == 10
    assert all(
        len(re.findall(r"^```python$", situation, flags=re.MULTILINE)) == 2 for situation in situations
    )
    assert all(len(re.findall(r"\(https://github\.com/", situation)) == 1 for situation in situations)


class Records:
    """Two records. The second comes while the first is handled."""

    def __init__(self, signal: Callable[[], object]) -> None:
        self.written = deque(["first"])
        self.handled: list[str] = []
        self.signal = signal
        signal()

    async def handle(self, record: str) -> None:
        self.handled.append(record)
        if record == "first":
            await asyncio.sleep(1)
            self.written.append("second")
            self.signal()


def test_a_cleared_event_loses_the_record_that_came_while_another_was_handled() -> None:
    async def scenario() -> list[str]:
        changed = asyncio.Event()
        records = Records(changed.set)
        reading = asyncio.create_task(page.read_by_event(records.written, changed, records.handle))
        await asyncio.sleep(60)
        reading.cancel()
        return records.handled

    assert run(scenario()) == ["first"]


def test_a_key_loses_no_record() -> None:
    async def scenario() -> list[str]:
        async with Purgatory() as purgatory:
            records = Records(lambda: purgatory.check_and_complete("records"))
            reading = asyncio.create_task(page.read_by_key(records.written, purgatory, records.handle))
            await asyncio.sleep(60)
            reading.cancel()
            return records.handled

    assert run(scenario()) == ["first", "second"]


class Job:
    """It ends while the answer that it still runs is on its way."""

    def __init__(self) -> None:
        self.done = False

    async def ended(self, name: str) -> bool:
        answer = self.done
        await asyncio.sleep(1)
        return answer


def test_a_signal_before_the_wait_finds_no_event() -> None:
    async def scenario() -> None:
        job, events = Job(), dict[str, asyncio.Event]()
        waiting = asyncio.create_task(page.wait_for_event("job", events, job.ended))
        await asyncio.sleep(0.5)
        job.done = True
        assert "job" not in events
        async with asyncio.timeout(60):
            await waiting

    with pytest.raises(TimeoutError):
        run(scenario())


def test_a_check_during_the_evaluation_is_not_missed() -> None:
    async def scenario() -> None:
        async with Purgatory() as purgatory:
            job = Job()
            waiting = asyncio.create_task(page.wait_for_key("job", purgatory, job.ended))
            await asyncio.sleep(0.5)
            job.done = True
            purgatory.check_and_complete("job")
            async with asyncio.timeout(60):
                await waiting

    run(scenario())


def test_a_second_future_takes_the_place_of_the_first() -> None:
    async def scenario() -> list[bool]:
        pending: dict[str, asyncio.Future[str]] = {}
        callers = [asyncio.create_task(page.ask_by_dict("ada", pending)) for _ in range(2)]
        await turn()
        page.answer_by_dict("ada", "answer", pending)
        await asyncio.sleep(60)
        return [caller.done() for caller in callers]

    assert run(scenario()) == [False, True]


def test_a_key_answers_all_who_ask() -> None:
    async def scenario() -> Any:
        async with Purgatory() as purgatory:
            callers = [asyncio.create_task(page.ask_by_key("ada", purgatory)) for _ in range(2)]
            await turn()
            page.answer_by_key("ada", "answer", purgatory)
            return await asyncio.gather(*callers)

    assert run(scenario()) == ["answer", "answer"]


class Answer:
    pass


def test_a_timer_keeps_the_answer_until_the_timeout() -> None:
    async def scenario() -> list[bool]:
        answer = weakref.ref(await page.request_with_timer(lambda future: future.set_result(Answer())))
        kept = []
        for seconds in (1, 58, 2):
            await asyncio.sleep(seconds)
            kept.append(answer() is not None)
        return kept

    assert run(scenario()) == [True, True, False]


def test_an_operation_keeps_no_answer() -> None:
    async def scenario() -> bool:
        async with Purgatory() as purgatory:
            waiting = page.request_with_timeout(lambda operation: operation.complete(Answer()), purgatory)
            answer = weakref.ref(await waiting)
            await turn()
            return answer() is not None

    assert not run(scenario())


def test_a_connection_that_is_handed_to_a_cancelled_task_is_lost() -> None:
    async def scenario() -> tuple[list[str], bool]:
        free, waiting = list[str](), deque[asyncio.Future[str]]()
        ada, bob = [asyncio.create_task(page.acquire_by_future(free, waiting)) for _ in range(2)]
        await turn()
        page.release_by_future("connection", free, waiting)
        ada.cancel()
        await asyncio.sleep(60)
        return free, bob.done()

    assert run(scenario()) == ([], False)


@pytest.mark.parametrize("cancelled", ["before the release", "after the release"])
def test_a_connection_goes_past_a_cancelled_task(cancelled: str) -> None:
    async def scenario() -> Any:
        async with Purgatory() as purgatory:
            free: list[str] = []
            ada, bob = [asyncio.create_task(page.acquire_by_key(free, purgatory)) for _ in range(2)]
            await turn()
            if cancelled == "before the release":
                ada.cancel()
            page.release_by_key("connection", free, purgatory)
            ada.cancel()
            return await bob

    assert run(scenario()) == "connection"


def broken(event: str) -> bool:
    raise LookupError(event)


def test_a_listener_that_raises_hides_the_event_from_those_behind_it() -> None:
    async def scenario() -> list[bool]:
        futures: list[asyncio.Future[str]] = [asyncio.get_running_loop().create_future() for _ in range(2)]
        with pytest.raises(LookupError):
            page.publish_to_list("hello", list(zip([broken, str.islower], futures, strict=True)))
        return [future.done() for future in futures]

    assert run(scenario()) == [False, False]


def test_a_listener_that_raises_gets_its_own_error_and_nobody_else() -> None:
    async def scenario() -> list[Any]:
        async with Purgatory() as purgatory:
            events: list[str] = []
            listeners = [
                asyncio.create_task(page.listen(wants, events, purgatory)) for wants in (broken, str.islower)
            ]
            await turn()
            page.publish_to_key("hello", events, purgatory)
            return await asyncio.gather(*listeners, return_exceptions=True)

    error, events = run(scenario())
    assert isinstance(error, LookupError)
    assert events == ["hello"]


def test_each_poll_leaves_a_task() -> None:
    async def scenario() -> int:
        news, closed = asyncio.Event(), asyncio.Event()
        news.set()
        for _ in range(100):
            assert await page.poll_by_tasks(news, closed)
        return len(asyncio.all_tasks()) - 1

    assert run(scenario()) == 100


def test_a_poll_of_two_keys_leaves_no_task() -> None:
    async def scenario() -> int:
        async with Purgatory() as purgatory:
            before = len(asyncio.all_tasks())
            facts: set[str] = set()
            for _ in range(100):
                poll = asyncio.create_task(page.poll_by_keys(facts, purgatory))
                await turn()
                facts.add("news")
                purgatory.check_and_complete("news")
                assert await poll
                facts.clear()
            return len(asyncio.all_tasks()) - before

    assert run(scenario()) == 0


async def slow_to_stop() -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        await asyncio.sleep(60)


async def limited(stop: Callable[[asyncio.Task[None]], Coroutine[Any, Any, None]]) -> None:
    job = asyncio.create_task(slow_to_stop())
    await turn()
    async with asyncio.timeout(1):
        await stop(job)


def test_a_timeout_is_swallowed_together_with_the_cancellation_of_a_job() -> None:
    run(limited(page.stop_by_await))


def test_waiting_for_the_end_of_a_job_swallows_no_timeout() -> None:
    async def scenario() -> None:
        async with Purgatory() as purgatory:
            await limited(lambda job: page.stop_by_key(job, purgatory))

    with pytest.raises(TimeoutError):
        run(scenario())


def test_waiting_for_the_end_of_a_job_ends_with_it() -> None:
    async def scenario() -> float:
        async with Purgatory() as purgatory:
            job = asyncio.create_task(slow_to_stop())
            await turn()
            await page.stop_by_key(job, purgatory)
            return asyncio.get_running_loop().time()

    assert run(scenario()) == 60


def test_a_late_reply_goes_to_the_next_caller() -> None:
    async def scenario() -> str:
        replies: asyncio.Queue[str] = asyncio.Queue()

        def send(request: str) -> None:
            seconds = 1.5 if request == "slow" else 0.5
            asyncio.get_running_loop().call_later(seconds, replies.put_nowait, f"reply to {request}")

        with pytest.raises(TimeoutError):
            await page.call_in_order("slow", send, replies)
        await asyncio.sleep(1)
        reply: str = await page.call_in_order("fast", send, replies)
        return reply

    assert run(scenario()) == "reply to slow"


def test_a_late_reply_goes_to_nobody() -> None:
    async def scenario() -> str:
        async with Purgatory() as purgatory:
            numbers = count()

            def send(number: int, request: str) -> None:
                seconds, reply = 1.5 if request == "slow" else 0.5, f"reply to {request}"
                asyncio.get_running_loop().call_later(seconds, page.receive, number, reply, purgatory)

            with pytest.raises(TimeoutError):
                await page.call_by_number("slow", send, numbers, purgatory)
            await asyncio.sleep(1)
            reply: str = await page.call_by_number("fast", send, numbers, purgatory)
            return reply

    assert run(scenario()) == "reply to fast"


READERS = 100


class CountingLoop(VirtualTimeLoop):
    """Counts what it runs: above all, each step of a task."""

    steps = 0

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self.steps += 1
        return super().call_soon(callback, *args, context=context)


async def steps_of(
    readers: list[asyncio.Task[str]], append: Callable[[str], Coroutine[Any, Any, None]]
) -> int:
    """How many steps it takes to write the records, each of which one reader waits for."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, CountingLoop)
    await turn()
    steps = loop.steps
    for offset in range(READERS):
        await append(str(offset))
        # Time passes when no task can run any more.
        await asyncio.sleep(1)
    assert await asyncio.gather(*readers) == list(map(str, range(READERS)))
    return loop.steps - steps


def test_a_condition_wakes_every_reader_for_every_record() -> None:
    async def scenario() -> int:
        log: list[str] = []
        changed = asyncio.Condition()
        readers = [
            asyncio.create_task(page.read_by_condition(offset, log, changed)) for offset in range(READERS)
        ]

        async def append(record: str) -> None:
            await page.append_by_condition(record, log, changed)

        return await steps_of(readers, append)

    assert run(scenario(), CountingLoop) > READERS**2 / 2


def test_a_check_wakes_the_reader_that_the_record_is_for() -> None:
    async def scenario() -> int:
        async with Purgatory() as purgatory:
            log: list[str] = []
            readers = [
                asyncio.create_task(page.read_when_there(offset, log, purgatory)) for offset in range(READERS)
            ]

            async def append(record: str) -> None:
                page.append_and_check(record, log, purgatory)

            return await steps_of(readers, append)

    assert run(scenario(), CountingLoop) < 10 * READERS
