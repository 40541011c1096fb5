"""Operations for the tests, and things that their hooks do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NoReturn

from purgatory import DelayedOperation


class Stop(BaseException):
    """A BaseException in place of KeyboardInterrupt, which would also end the test run."""


class Gate(DelayedOperation[str]):
    """Completes when it is tried while `opened` is True. Its result is its name.

    `ran` lists the hooks that have run. They call `trying`, `completing` and `expiring`.
    """

    def __init__(
        self,
        timeout: float | None = None,
        name: str = "gate",
        *,
        opened: bool = False,
        trying: Callable[[], object] | None = None,
        completing: Callable[[], object] | None = None,
        expiring: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(timeout)
        self.name = name
        self.opened = opened
        self.trying = trying
        self.completing = completing
        self.expiring = expiring
        self.ran: list[str] = []

    def try_complete(self) -> bool:
        self.ran.append("try_complete")
        if self.trying is not None:
            self.trying()
        return self.opened and self.force_complete()

    def on_complete(self) -> str:
        self.ran.append("on_complete")
        if self.completing is not None:
            self.completing()
        return self.name

    def on_expiration(self) -> None:
        self.ran.append("on_expiration")
        if self.expiring is not None:
            self.expiring()


def raising(error: BaseException) -> Callable[[], NoReturn]:
    """Return a function that raises `error`, for a hook to call."""

    def raise_it() -> NoReturn:
        raise error

    return raise_it


async def a_few_turns() -> None:
    """Let the loop run everything that is ready, and what that makes ready in turn."""
    for _ in range(5):
        await asyncio.sleep(0)
