"""The types that a checker sees: mypy reads each `assert_type` here, and running them does nothing."""

from __future__ import annotations

from typing import Literal, assert_type

from purgatory import AsyncDelayedOperation, Purgatory
from tests.operations import Gate

PRICES = {"tea": 3}
LOG = ["first"]


def nothing_or_text() -> str | None:
    return "text"


async def test_wait_until_gives_the_type_of_the_predicate_without_none_and_false(
    purgatory: Purgatory,
) -> None:
    assert assert_type(await purgatory.wait_until(lambda: PRICES.get("tea"), ["tea"]), int) == 3
    assert assert_type(await purgatory.wait_until(nothing_or_text, ["key"]), str) == "text"
    assert assert_type(await purgatory.wait_until(lambda: bool(LOG) and LOG[0], ["key"]), str) == "first"
    assert assert_type(await purgatory.wait_until(lambda: LOG, ["key"]), list[str]) is LOG
    assert assert_type(await purgatory.wait_until(lambda: len(LOG) == 1, ["key"]), bool) is True


async def test_wait_until_gives_the_type_of_what_an_async_predicate_returns(purgatory: Purgatory) -> None:
    async def price() -> int | None:
        return PRICES.get("tea")

    async def first() -> str | Literal[False]:
        return bool(LOG) and LOG[0]

    assert assert_type(await purgatory.wait_until(price, ["tea"]), int) == 3
    assert assert_type(await purgatory.wait_until(lambda: price(), ["tea"]), int) == 3
    assert assert_type(await purgatory.wait_until(first, ["key"]), str) == "first"


async def test_an_async_condition_gives_its_operation_the_type_of_its_result(purgatory: Purgatory) -> None:
    class Price(AsyncDelayedOperation[int]):
        async def condition(self) -> int | None:
            return PRICES.get("tea")

    parked = assert_type(purgatory.try_complete_else_watch(Price(1.0), ["tea"]), Price)
    assert assert_type(await parked, int) == 3


async def test_an_operation_keeps_its_class_and_its_result_has_its_type(
    purgatory: Purgatory,
) -> None:
    gate = assert_type(Gate(1.0, opened=True), Gate)
    parked = assert_type(purgatory.try_complete_else_watch(gate, ["key"]), Gate)
    assert assert_type(await parked, str) == "gate"
