"""The log: failures with their operation and keys, nothing else, and no output unless it is configured."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from purgatory import DelayedOperation, Purgatory
from purgatory.observer import Timing
from purgatory.testing import ManualClock
from tests.operations import Gate, Stop, a_few_turns, raising

LOGGER = "purgatory"
# The fields that every record of the package has.
FIELDS = ("purgatory", "kind", "keys")


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger=LOGGER)
    return caplog


def records(log: pytest.LogCaptureFixture) -> list[tuple[int, dict[str, Any], BaseException | None]]:
    """Return the level, the fields and the exception of each record of the package."""
    return [
        (
            record.levelno,
            {field: getattr(record, field) for field in FIELDS},
            record.exc_info[1] if record.exc_info else None,
        )
        for record in log.records
        if record.name == LOGGER
    ]


async def test_a_failure_that_no_task_awaits_is_logged_as_an_error_with_kind_and_keys(
    reported: list[dict[str, Any]], log: pytest.LogCaptureFixture
) -> None:
    error = ValueError("bad")
    async with Purgatory("polls") as polls:
        polls.try_complete_else_watch(Gate(60, completing=raising(error)), ["a", 7]).force_complete()
        await a_few_turns()
    fields = {"purgatory": "polls", "kind": "Gate", "keys": ("a", 7)}
    assert records(log) == [(logging.ERROR, fields, error)]
    [message] = [record.getMessage() for record in log.records if record.name == LOGGER]
    assert message.startswith("purgatory 'polls': <Gate failed")
    assert len(reported) == 1


async def test_a_failure_that_a_task_awaits_is_logged_as_information(log: pytest.LogCaptureFixture) -> None:
    error = ValueError("bad")
    async with Purgatory("polls") as polls:
        with pytest.raises(ValueError, match="bad"):
            await polls.try_complete_else_watch(Gate(60, trying=raising(error)), ["a"])
        await a_few_turns()
    assert records(log) == [(logging.INFO, {"purgatory": "polls", "kind": "Gate", "keys": ("a",)}, error)]


async def test_an_observer_that_raises_is_logged_with_its_purgatory(
    reported: list[dict[str, Any]], log: pytest.LogCaptureFixture
) -> None:
    error = ValueError("observer")

    class Troublemaker:
        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None:
            raise error

        def key_checked(self, *_: object) -> None:
            pass

    async with Purgatory("polls", observers=[Troublemaker()]) as polls:
        polls.try_complete_else_watch(Gate(opened=True), ["a"])
        await a_few_turns()
    assert records(log) == [(logging.ERROR, {"purgatory": "polls", "kind": None, "keys": None}, error)]
    assert len(reported) == 1


async def test_a_log_that_raises_harms_no_operation(
    reported: list[dict[str, Any]], log: pytest.LogCaptureFixture, broken_filter: ValueError
) -> None:
    async with Purgatory("polls") as polls:
        failed = polls.try_complete_else_watch(Gate(60, completing=raising(ValueError("bad"))), ["a"])
        behind = polls.try_complete_else_watch(Gate(60), ["a"])
        failed.opened = behind.opened = True
        assert polls.check_and_complete("a") == 1
        await a_few_turns()
    assert [context["exception"] for context in reported][1:] == [broken_filter]
    assert polls.statistics().failed == polls.statistics().completed == 1


@pytest.fixture
def broken_filter() -> Iterator[ValueError]:
    """The error that a filter of the log raises during the test."""
    error = ValueError("filter")

    def broken(_: logging.LogRecord) -> bool:
        raise error

    logging.getLogger(LOGGER).addFilter(broken)
    yield error
    logging.getLogger(LOGGER).removeFilter(broken)


def test_an_exception_that_propagates_is_not_logged(log: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    gate = clock.purgatory().try_complete_else_watch(Gate(60, completing=raising(Stop("up"))), ["a"])
    with pytest.raises(Stop):
        gate.force_complete()
    clock.advance(1)
    assert records(log) == []


def test_nothing_is_printed_in_a_program_that_has_not_configured_logging() -> None:
    program = """
import asyncio
from purgatory import DelayedOperation, Purgatory

class Bad(DelayedOperation):
    def try_complete(self):
        raise ValueError("bad")

async def main():
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: print("told"))
    async with Purgatory() as purgatory:
        purgatory.try_complete_else_watch(Bad(60), ["a"])
        try:
            await purgatory.try_complete_else_watch(Bad(60), ["a"])
        except ValueError:
            print("caught")

# In debug mode asyncio itself would print what is slow.
asyncio.run(main(), debug=False)
"""
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == ("caught\ntold\n", "")


def test_a_failure_is_logged_even_if_the_program_ends_at_once(log: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        async with Purgatory() as purgatory:
            purgatory.try_complete_else_watch(Gate(60, trying=raising(ValueError("bad"))), ["a"])

    asyncio.run(main())
    assert len(records(log)) == 1


def test_a_failure_on_a_closed_loop_is_logged_at_once(log: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    purgatory = Purgatory()
    purgatory._open_on(loop)
    loop.close()
    purgatory.try_complete_else_watch(Gate(trying=raising(ValueError("bad"))), ["a"])
    assert [level for level, _, _ in records(log)] == [logging.ERROR]
