"""Processes that print lines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Self, TypeVar

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

T = TypeVar("T")

# Seconds until a process that was told to stop is killed.
_STOPPING: Final = 20.0
_ROOT: Final = Path(__file__).parents[3]


class Child:
    """A process that prints lines, and ends with the block."""

    def __init__(self, process: Process, name: str) -> None:
        self.process = process
        self._name = name
        self.lines: list[str] = []
        self.ended = anyio.Event()
        self._news = anyio.Event()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name}>"

    @classmethod
    @asynccontextmanager
    async def running(cls, arguments: Sequence[str], log: Path) -> AsyncIterator[Self]:
        """Start ``python -m`` with these arguments. Its standard error goes to the file `log`."""
        with log.open("ab") as errors:
            process = await anyio.open_process(
                [sys.executable, "-m", *arguments],
                stdin=subprocess.DEVNULL,
                stderr=errors,
                cwd=_ROOT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                # Ctrl-C reaches the demo alone. It ends its processes in the right order.
                start_new_session=True,
            )
        child = cls(process, log.stem)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(child._listen)
                yield child
                tasks.cancel_scope.cancel()
        finally:
            if process.returncode is None:
                process.kill()
            with anyio.CancelScope(shield=True):
                await process.aclose()

    async def line(self, start: str) -> str:
        """The first line that begins so. Raises RuntimeError when the process ends without it."""
        return await self.until(lambda: next((line for line in self.lines if line.startswith(start)), None))

    async def until(self, condition: Callable[[], T | None]) -> T:
        """The first true value, at a new line. Raises RuntimeError when the process ends without one."""
        while not (value := condition()):
            if self.ended.is_set():
                raise RuntimeError(f"{self!r} ended with status {self.process.returncode}")
            await self._news.wait()
        return value

    async def stop(self) -> int:
        """Ask the process to stop, and return its exit status. It is killed if that takes long."""
        if self.process.returncode is None:
            self.process.terminate()
            # A process that was paused hears it then.
            self.process.send_signal(signal.SIGCONT)
        with anyio.move_on_after(_STOPPING):
            return await self.process.wait()
        self.process.kill()
        return await self.process.wait()

    def took(self, line: str) -> None:
        """Handle a line of output."""
        self.lines.append(line)

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        rest = ""
        async for text in TextReceiveStream(self.process.stdout):
            *lines, rest = (rest + text).split("\n")
            for line in lines:
                self.took(line)
            self._wake()
        await self.process.wait()
        self.ended.set()
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()


@asynccontextmanager
async def brokers(log: Path) -> AsyncIterator[str]:
    """Three brokers in a process, and where clients find them."""
    options = ("--port", "0", "--group-initial-rebalance-delay", "0.5", "--group-min-session-timeout", "1")
    async with Child.running(("examples.broker", *options), log) as child:
        yield (await child.line("bootstrap.servers=")).partition("=")[2]
        await child.stop()
