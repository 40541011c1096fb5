"""A file system that is really full."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from purgatory.delayed import DelayedMessages


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mounted = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(tmp_path)]
    try:
        subprocess.run(mounted, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the right to mount a file system")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_on_a_full_file_system_schedule_raises_and_goes_on_once_there_is_room(small_disk: Path) -> None:
    now = 2e9
    delivered: list[int] = []
    all_came = asyncio.Event()
    expected = 0

    async def deliver(id: str, payload: bytes, due: float) -> None:
        assert now >= due
        delivered.append(int(payload))
        if len(delivered) == expected:
            all_came.set()

    async def fill() -> list[int]:
        stored: list[int] = []
        async with DelayedMessages(small_disk / "messages", deliver, clock=lambda: now) as delayed:
            with suppress(OSError):
                while True:
                    await delayed.schedule(b"%0500d" % len(stored), at=now + 60 + len(stored) % 5)
                    stored.append(len(stored))
            with pytest.raises(OSError, match="No space"):
                await delayed.schedule(b"%0500d" % 0, at=now + 60)
            remount = ["mount", "-o", "remount,size=4m", str(small_disk)]
            await asyncio.to_thread(subprocess.run, remount, check=True, timeout=60)
            await delayed.schedule(b"10000", at=now + 60)
        return [*stored, 10_000]

    async def drain() -> None:
        async with DelayedMessages(small_disk / "messages", deliver, clock=lambda: now):
            await all_came.wait()

    stored = asyncio.run(fill())
    assert len(stored) > 100
    assert delivered == []
    now += 120
    expected = len(stored)
    asyncio.run(drain())
    assert sorted(delivered) == stored
