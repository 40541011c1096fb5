"""A shop whose payments are durable operations, and what is left of them on the disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from purgatory import Purgatory
from purgatory.delayed import DurableOperation, DurableOperations
from purgatory.delayed.inspect.inspection import inspect
from purgatory.delayed.storage.disk import Disk

START = 1_900_000_000.0


@dataclass
class Shop:
    """What the operations look at, and what they have done: (what, order, wall clock)."""

    clock: Callable[[], float]
    paid: set[str] = field(default_factory=set)
    done: list[tuple[str, str, float]] = field(default_factory=list)

    def payment(self, order: str, timeout: float) -> PaymentDue:
        return PaymentDue(self, order, timeout)

    def restore(self, payload: bytes, timeout: float) -> PaymentDue:
        self.done.append(("restored", payload.decode(), self.clock()))
        return PaymentDue(self, payload.decode(), timeout)

    def events(self, what: str) -> list[tuple[str, float]]:
        return [(order, round(at - START, 3)) for event, order, at in self.done if event == what]


class PaymentDue(DurableOperation[str]):
    kind = "payment"

    def __init__(self, shop: Shop, order: str, timeout: float) -> None:
        super().__init__(timeout)
        self.shop = shop
        self.order = order

    def payload(self) -> bytes:
        return self.order.encode()

    def try_complete(self) -> bool:
        return self.order in self.shop.paid and self.force_complete()

    def on_complete(self) -> str:
        if self.order == "bad":
            raise ValueError("a bad order")
        return "expired" if self.expired else "paid"

    def on_expiration(self) -> None:
        self.shop.done.append(("expired", self.order, self.shop.clock()))


@asynccontextmanager
async def opened(
    path: Path, shop: Shop, disk: Disk | None = None, **options: Any
) -> AsyncIterator[DurableOperations]:
    """Operations in a purgatory of their own, as after a start of the process."""
    factories = {"payment": shop.restore}
    async with (
        Purgatory("payments", **options) as purgatory,
        DurableOperations(purgatory, path, factories, clock=shop.clock, disk=disk) as operations,
    ):
        yield operations


def pending(path: Path) -> int:
    """How many messages are on the disk."""
    return inspect(path).pending.messages


async def until_gone() -> None:
    """Wait until the messages of ended operations are gone. Time stands still while the disk works."""
    await asyncio.sleep(0.1)
