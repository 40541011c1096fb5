"""`SingleFlight`: one load for all who ask at the same time."""

from __future__ import annotations

import asyncio
import contextvars
import weakref
from collections.abc import AsyncIterator, Coroutine, Hashable
from typing import Any, NoReturn

import pytest
import pytest_asyncio

from purgatory import (
    DelayedValue,
    OperationWithdrawn,
    Purgatory,
    PurgatoryClosed,
    PurgatoryFull,
    SingleFlight,
)
from tests.conftest import LoopFactory
from tests.core.purgatories import nothing_is_left
from tests.operations import Stop, a_few_turns


class Database:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked = 0
        self.cancelled = 0
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def load(self) -> str:
        self.asked += 1
        try:
            return await asyncio.shield(self.answer)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


@pytest_asyncio.fixture
async def database() -> Database:
    return Database()


@pytest_asyncio.fixture
async def flights(purgatory: Purgatory) -> AsyncIterator[SingleFlight[str]]:
    """Nothing may stay behind."""
    flights = SingleFlight[str](purgatory)
    yield flights
    await a_few_turns()
    assert repr(flights) == "<SingleFlight loading=0>"
    assert nothing_is_left(purgatory)
    assert not purgatory._engine.evaluations


def start(*calls: Coroutine[Any, Any, str]) -> list[asyncio.Task[str]]:
    return [asyncio.ensure_future(call) for call in calls]


async def test_all_who_ask_at_the_same_time_get_the_value_of_one_load(
    flights: SingleFlight[str], database: Database
) -> None:
    callers = start(*(flights.get("ada", database.load) for _ in range(3)))
    await a_few_turns()
    assert repr(flights) == "<SingleFlight loading=1>"
    database.answer.set_result("ADA")
    assert await asyncio.gather(*callers) == ["ADA"] * 3
    assert database.asked == 1


async def test_a_value_in_place_of_a_load_is_refused(flights: SingleFlight[str]) -> None:
    value: Any = "value"
    with pytest.raises(
        TypeError, match=r"^load must be an async function, not 'value': put `lambda:` before"
    ):
        await flights.get("key", value)


async def test_each_key_has_a_load_of_its_own(flights: SingleFlight[str], database: Database) -> None:
    callers = start(*(flights.get(name, database.load) for name in ("ada", "bob")))
    database.answer.set_result("ADA")
    assert await asyncio.gather(*callers) == ["ADA", "ADA"]
    assert database.asked == 2


async def test_a_value_is_not_kept(flights: SingleFlight[str], database: Database) -> None:
    database.answer.set_result("ADA")
    for asked in (1, 2):
        assert await flights.get("ada", database.load) == "ADA"
        assert database.asked == asked


async def test_a_load_may_return_without_waiting(flights: SingleFlight[str]) -> None:
    async def load() -> str:
        return "ADA"

    callers = start(*(flights.get("ada", load) for _ in range(2)))
    assert await asyncio.gather(*callers) == ["ADA", "ADA"]


async def test_a_load_may_return_any_awaitable(flights: SingleFlight[str], database: Database) -> None:
    database.answer.set_result("ADA")
    assert await flights.get("ada", lambda: database.answer) == "ADA"


async def test_all_who_wait_get_the_error_and_it_is_not_kept(
    flights: SingleFlight[str], database: Database
) -> None:
    error = LookupError("no such name")
    callers = start(*(flights.get("ada", database.load) for _ in range(3)))
    await a_few_turns()
    database.answer.set_exception(error)
    assert await asyncio.gather(*callers, return_exceptions=True) == [error] * 3
    database.answer = asyncio.get_running_loop().create_future()
    database.answer.set_result("ADA")
    assert await flights.get("ada", database.load) == "ADA"


async def test_a_load_that_fails_at_once_hands_its_error_over(flights: SingleFlight[str]) -> None:
    async def load() -> str:
        raise LookupError("no such name")

    def broken() -> NoReturn:
        raise LookupError("no such name")

    for each in (load, broken):
        with pytest.raises(LookupError):
            await flights.get("ada", each)


async def test_a_load_that_reads_something_cancelled_is_an_error_of_all_who_wait(
    flights: SingleFlight[str], database: Database
) -> None:
    callers = start(*(flights.get("ada", database.load) for _ in range(2)))
    await a_few_turns()
    database.answer.cancel()
    for caller in callers:
        message = "^the load of 'ada' raised CancelledError: something that it reads was cancelled$"
        with pytest.raises(RuntimeError, match=message):
            await caller


async def test_each_caller_has_a_timeout_of_its_own(virtual_time: Any) -> None:
    async with Purgatory() as purgatory:
        flights = SingleFlight[str](purgatory)
        database = Database()
        patient, impatient = start(*(flights.get("ada", database.load, timeout) for timeout in (10, 2)))
        with pytest.raises(TimeoutError, match=r"^the load of 'ada' did not end within 2.0 s$"):
            await impatient
        assert virtual_time.time() == pytest.approx(2, abs=0.002)
        database.answer.set_result("ADA")
        assert await patient == "ADA"
        assert (database.asked, database.cancelled) == (1, 0)


async def test_a_caller_that_is_cancelled_does_not_stop_the_load(
    flights: SingleFlight[str], database: Database
) -> None:
    first, second = start(flights.get("ada", database.load), flights.get("ada", database.load))
    await a_few_turns()
    first.cancel()
    await asyncio.wait([first])
    assert first.cancelled()
    database.answer.set_result("ADA")
    assert await second == "ADA"
    assert database.asked == 1


async def test_a_load_whose_callers_have_all_gone_is_cancelled(
    flights: SingleFlight[str], database: Database
) -> None:
    callers = start(*(flights.get("ada", database.load) for _ in range(2)))
    await a_few_turns()
    for caller in callers:
        caller.cancel()
    await asyncio.wait(callers)
    assert repr(flights) == "<SingleFlight loading=0>"
    await a_few_turns()
    assert database.cancelled == 1


async def test_a_load_whose_only_caller_is_cancelled_at_once_never_begins(
    flights: SingleFlight[str], database: Database
) -> None:
    (caller,) = start(flights.get("ada", database.load))
    caller.cancel()
    await asyncio.wait([caller])
    await a_few_turns()
    assert database.cancelled == database.asked


async def test_who_asks_after_all_have_gone_starts_another_load(
    flights: SingleFlight[str], database: Database
) -> None:
    ending = asyncio.get_running_loop().create_future()

    async def slow_to_end() -> str:
        try:
            return await database.load()
        finally:
            await ending

    (first,) = start(flights.get("ada", slow_to_end))
    await a_few_turns()
    first.cancel()
    await asyncio.wait([first])
    (second,) = start(flights.get("ada", database.load))
    await a_few_turns()
    ending.set_result(None)
    await a_few_turns()
    # The end of the first load leaves the second one alone.
    assert repr(flights) == "<SingleFlight loading=1>"
    database.answer.set_result("ADA")
    assert await second == "ADA"
    assert database.asked == 2


async def test_a_load_that_fails_after_all_have_gone_is_reported(
    flights: SingleFlight[str], database: Database, reported: list[dict[str, Any]]
) -> None:
    error = OSError("could not roll back")

    async def load() -> str:
        try:
            return await database.load()
        except asyncio.CancelledError:
            raise error from None

    (caller,) = start(flights.get("ada", load))
    await a_few_turns()
    caller.cancel()
    await asyncio.wait([caller])
    await a_few_turns()
    assert reported == [{"message": "the load of 'ada' failed, and nobody got its error", "exception": error}]


async def test_a_load_without_time_is_not_started(flights: SingleFlight[str], database: Database) -> None:
    with pytest.raises(TimeoutError, match=r"^the load of 'ada' did not end within 0.0 s$"):
        await flights.get("ada", database.load, timeout=0)
    assert database.asked == 0


async def test_who_joins_without_time_leaves_the_load_alone(
    flights: SingleFlight[str], database: Database
) -> None:
    (caller,) = start(flights.get("ada", database.load))
    await a_few_turns()
    with pytest.raises(TimeoutError):
        await flights.get("ada", database.load, timeout=0)
    database.answer.set_result("ADA")
    assert await caller == "ADA"


async def test_a_load_that_somebody_else_cancels_withdraws_its_callers(
    flights: SingleFlight[str], database: Database
) -> None:
    callers = start(*(flights.get("ada", database.load) for _ in range(2)))
    await a_few_turns()
    (load,) = [each for each in asyncio.all_tasks() if each.get_name() == "the load of 'ada'"]
    load.cancel()
    for caller in callers:
        with pytest.raises(OperationWithdrawn, match="because the load was cancelled"):
            await caller


async def test_closing_ends_the_loads_and_waits_for_them(database: Database) -> None:
    async def slow_to_end() -> str:
        try:
            return await database.load()
        finally:
            for _ in range(100):
                await asyncio.sleep(0)
            ended.append("load")

    ended: list[str] = []
    async with Purgatory("cache") as purgatory:
        flights = SingleFlight[str](purgatory)
        callers = start(*(flights.get("ada", slow_to_end) for _ in range(2)))
        await a_few_turns()
        await purgatory.aclose()
        assert (database.cancelled, ended) == (1, ["load"])
        for caller in callers:
            with pytest.raises(
                TimeoutError, match=r"^the load of 'ada' did not end before the purgatory was closed$"
            ):
                await caller
        assert asyncio.all_tasks() == {asyncio.current_task()}
        with pytest.raises(PurgatoryClosed):
            await flights.get("ada", database.load)


async def test_a_purgatory_that_is_full_refuses_the_caller_and_loads_nothing(database: Database) -> None:
    async with Purgatory(max_pending=1) as purgatory:
        flights = SingleFlight[str](purgatory)
        purgatory.try_complete_else_watch(DelayedValue[str](None))
        with pytest.raises(PurgatoryFull):
            await flights.get("ada", database.load)
        assert (repr(flights), database.asked) == ("<SingleFlight loading=0>", 0)


async def test_who_asks_in_another_loop_is_refused_and_nothing_is_loaded(
    flights: SingleFlight[str], database: Database
) -> None:
    with pytest.raises(RuntimeError, match="belongs to the purgatory of another event loop"):
        await asyncio.to_thread(asyncio.run, flights.get("ada", database.load))
    assert database.asked == 0


async def test_a_task_factory_that_raises_leaves_nothing_behind(
    flights: SingleFlight[str], database: Database
) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise MemoryError

    loop = asyncio.get_running_loop()
    factory = loop.get_task_factory()
    loop.set_task_factory(refuse)
    try:
        with pytest.raises(MemoryError):
            await flights.get("ada", database.load)
    finally:
        loop.set_task_factory(factory)


async def test_operations_of_users_on_an_equal_key_get_nothing(
    purgatory: Purgatory, flights: SingleFlight[str], database: Database
) -> None:
    own = purgatory.try_complete_else_watch(DelayedValue[str](None), ["ada"])
    (caller,) = start(flights.get("ada", database.load))
    await a_few_turns()
    assert purgatory.complete_for_key("ada", "mine") == 1
    assert not caller.done()
    database.answer.set_result("ADA")
    assert (await caller, await own) == ("ADA", "mine")


class KeysOfStrings:
    def key_watched(self, key: Hashable) -> None:
        # As a relay does with what it cannot encode.
        if not isinstance(key, str):
            raise TypeError

    def key_left(self, key: Hashable) -> None: ...


async def test_an_observer_of_the_keys_hears_of_no_load(
    purgatory: Purgatory, flights: SingleFlight[str], database: Database
) -> None:
    purgatory.observe_keys(KeysOfStrings())
    database.answer.set_result("ADA")
    assert await flights.get(("users", 1.5), database.load) == "ADA"


async def test_a_load_runs_in_the_context_of_the_first_caller(flights: SingleFlight[str]) -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user")

    async def load() -> str:
        await asyncio.sleep(0)
        return user.get()

    async def ask(name: str) -> str:
        user.set(name)
        return await flights.get("profile", load)

    assert await asyncio.gather(*start(ask("ada"), ask("bob"))) == ["ada", "ada"]


async def test_an_interruption_in_a_load_withdraws_its_callers_and_is_reported(
    flights: SingleFlight[str], reported: list[dict[str, Any]]
) -> None:
    async def load() -> str:
        await asyncio.sleep(0)
        raise stop

    stop = Stop()
    with pytest.raises(OperationWithdrawn):
        await flights.get("ada", load)
    assert [each["exception"] for each in reported] == [stop]


def test_a_keyboard_interrupt_in_a_load_ends_the_loop_and_all_who_wait(loop_factory: LoopFactory) -> None:
    async def load() -> str:
        await asyncio.sleep(0)
        raise KeyboardInterrupt

    async def main() -> None:
        async with Purgatory() as purgatory:
            await SingleFlight[str](purgatory).get("ada", load)

    with asyncio.Runner(loop_factory=loop_factory) as runner, pytest.raises(KeyboardInterrupt):
        runner.run(main())


@pytest.mark.usefixtures("collector_off")
async def test_a_value_is_freed_without_the_collector(purgatory: Purgatory) -> None:
    class Value: ...

    async def load() -> Value:
        await asyncio.sleep(0)
        return Value()

    gone = weakref.ref(await SingleFlight[Value](purgatory).get("ada", load))
    await a_few_turns()
    assert gone() is None
