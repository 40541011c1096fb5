"""What cannot be offered is refused whole."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from purgatory import OperationState, Purgatory, PurgatoryClosed, PurgatoryFull, PurgatoryNotOpen
from purgatory.delayed import DurableOperation, DurableOperations
from tests.delayed.durable.shop import PaymentDue, Shop, opened, until_gone
from tests.operations import raising


@pytest.mark.parametrize("timeout", [float("inf"), None])
async def test_a_timeout_that_never_ends_is_refused(shop: Shop, timeout: Any) -> None:
    with pytest.raises(ValueError, match="needs a finite timeout, not"):
        shop.payment("tea", timeout)


class Key:
    pass


@pytest.mark.parametrize(
    ("keys", "error"),
    [([Key()], TypeError), ([b"tea"], TypeError), ([float("nan")], TypeError), ("tea", TypeError)],
)
async def test_keys_that_json_does_not_hold_are_refused(
    path: Path, shop: Shop, keys: Any, error: type[Exception]
) -> None:
    async with opened(path, shop) as operations:
        with pytest.raises(error, match="keys"):
            await operations.offer(shop.payment("tea", 60), keys)
        assert operations.purgatory.operations() == []


async def test_what_the_purgatory_refuses_is_not_written(path: Path, shop: Shop) -> None:
    async with opened(path, shop, max_pending=1) as operations:
        operation = await operations.offer(shop.payment("tea", 60), ["tea"])
        refused = shop.payment("milk", 60)
        with pytest.raises(PurgatoryFull):
            await operations.offer(refused, ["milk"])
        with pytest.raises(ValueError, match="key"):
            await operations.offer(refused, [])
        with pytest.raises(RuntimeError, match="was offered before: make a new one for each wait"):
            await operations.offer(operation, ["milk"])
        assert operation.keys == ("tea",)
        assert operations.messages.statistics().scheduled == 1
        await operation
        await operations.offer(refused, ["milk"])
        await until_gone()
        assert len(operations) == 1


async def test_a_kind_without_a_factory_is_refused(path: Path, shop: Shop) -> None:
    class Nameless(DurableOperation[None]):
        def try_complete(self) -> bool:
            return False

    class Unknown(PaymentDue):
        kind = "unknown"

    async with opened(path, shop) as operations:
        with pytest.raises(ValueError, match=r"the kind 'unknown' of .*; there are: 'payment'"):
            await operations.offer(Unknown(shop, "tea", 60), ["tea"])
        with pytest.raises(ValueError, match="no factory for the kind None"):
            await operations.offer(Nameless(60), ["tea"])
        Nameless.kind = "payment"
        with pytest.raises(NotImplementedError, match=r"Nameless must override payload\(\)"):
            await operations.offer(Nameless(60), ["tea"])


@pytest.mark.parametrize("given", [{}, {"kind": None}, {"kind": 3}])
def test_a_class_without_a_kind_is_refused_when_it_is_made(given: dict[str, Any]) -> None:
    members = {"payload": lambda self: b"", **given}
    with pytest.raises(TypeError, match=r"Payment needs a kind, its name on the disk"):
        type("Payment", (DurableOperation,), members)


async def test_offering_needs_open_operations(path: Path, shop: Shop) -> None:
    async with Purgatory() as purgatory:
        operations = DurableOperations(purgatory, path, {"payment": shop.restore}, clock=shop.clock)
        with pytest.raises(PurgatoryNotOpen, match="use `async with`"):
            await operations.offer(shop.payment("tea", 60), ["tea"])
        async with operations:
            assert repr(operations) == f"<DurableOperations {str(path)!r} of 0>"
        with pytest.raises(PurgatoryClosed):
            await operations.offer(shop.payment("tea", 60), ["tea"])


async def test_another_event_loop_is_refused_before_the_operation_is_tried(path: Path, shop: Shop) -> None:
    shop.paid.add("tea")
    async with opened(path, shop) as operations:
        for order in ("tea", "milk"):
            operation = shop.payment(order, 60)
            offering = operations.offer(operation, [order])
            with pytest.raises(RuntimeError, match=r"event loop: .* asyncio\.run_coroutine_threadsafe"):
                await asyncio.to_thread(asyncio.run, asyncio.wait_for(offering, 10))
            assert operation.state is OperationState.NEW
            # It can be offered in the right loop.
            await operations.offer(operation, [order])
        assert operations.purgatory.operations() == [operation]
        assert operations.messages.statistics().scheduled == 1


async def test_entering_needs_an_open_purgatory(path: Path, shop: Shop) -> None:
    operations = DurableOperations(Purgatory(), path, {}, clock=shop.clock)
    with pytest.raises(PurgatoryNotOpen, match="enter it before"):
        await operations.__aenter__()
    assert list(path.parent.iterdir()) == []


async def test_an_operation_whose_payload_reads_something_cancelled_is_refused(
    path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(path, shop) as operations:
        monkeypatch.setattr(PaymentDue, "payload", lambda _: raising(asyncio.CancelledError())())
        with pytest.raises(RuntimeError, match=r"^PaymentDue\.payload\(\) raised CancelledError: "):
            await operations.offer(shop.payment("tea", 60), ["tea"])
        assert operations.purgatory.operations() == []


async def restore_later(payload: bytes, timeout: float) -> None: ...


@pytest.mark.parametrize(
    ("factory", "complaint"),
    [
        (None, "the factory of the kind 'payment' must be a function, not NoneType"),
        (
            lambda payload: None,
            r"the factory of the kind 'payment' is called with \(payload, timeout\): too many",
        ),
        (restore_later, "the factory of the kind 'payment' must be a plain `def`, not an `async def`"),
    ],
)
def test_a_factory_that_cannot_be_called_is_refused(path: Path, factory: Any, complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        DurableOperations(Purgatory(), path, {"payment": factory})
