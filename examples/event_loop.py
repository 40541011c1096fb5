"""Runs an example on uvloop where it is installed, and on asyncio's own loop elsewhere."""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run `main()` on a new event loop and return its result."""
    return anyio.run(main, backend_options={"use_uvloop": importlib.util.find_spec("uvloop") is not None})
