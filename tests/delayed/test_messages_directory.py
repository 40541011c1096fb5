"""When a directory of an open store has gone, the store fails, and acknowledges nothing more."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from purgatory.delayed import DelayedMessages, StoreFailed
from tests.delayed.service import BEGIN, Service


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "messages"


def store(path: Path | str, service: Service, **options: Any) -> DelayedMessages:
    return DelayedMessages(path, service.deliver, clock=service.wall, **options)


async def test_a_relative_path_is_that_of_the_start(
    tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    delayed = store("messages", service)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    async with delayed:
        await delayed.schedule(b"soon", at=BEGIN + 1)
        monkeypatch.chdir(tmp_path)
        await delayed.schedule(b"later", at=BEGIN + 60)
        monkeypatch.chdir("/")
        await asyncio.sleep(100)
    assert service.payloads == [b"soon", b"later"]
    assert delayed.path == tmp_path / "messages"


def remove(path: Path) -> None:
    shutil.rmtree(path)


def rename(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replace(path: Path) -> None:
    rename(path)
    shutil.copytree(path.with_name("elsewhere"), path)


def replace_by_a_file(path: Path) -> None:
    rename(path)
    path.touch()


def empty(path: Path) -> None:
    """The new directory may get the inode of the old one."""
    shutil.rmtree(path)
    path.mkdir()


# Another process could open the directory without the file `lock`.
GONE = pytest.mark.parametrize(
    ("leave", "part"),
    [
        (os.remove, "lock"),
        *product([remove, rename, replace, replace_by_a_file, empty], ["", "wal", "slots", "ids"]),
    ],
)


@GONE
async def test_a_message_is_not_acknowledged_when_a_directory_has_gone(
    path: Path, service: Service, caplog: pytest.LogCaptureFixture, leave: Callable[[Path], None], part: str
) -> None:
    delayed = store(path, service)

    async def serve() -> None:
        async with delayed:
            # The segment of the log is open from now on.
            await delayed.schedule(b"before", at=BEGIN + 60)
            leave(path / part)
            for _ in range(2):
                with pytest.raises(StoreFailed, match="was removed, renamed or replaced while it was open"):
                    await delayed.schedule(b"after", at=BEGIN + 60)
            assert delayed.statistics().failed == 1

    with pytest.raises(StoreFailed, match=f"^{path / part} was removed, renamed or replaced"):
        await serve()
    assert [record.levelno for record in caplog.records] == [logging.CRITICAL]


@GONE
async def test_a_store_that_nobody_calls_notices_within_ten_seconds_that_a_directory_has_gone(
    path: Path, service: Service, caplog: pytest.LogCaptureFixture, leave: Callable[[Path], None], part: str
) -> None:
    async def serve() -> None:
        async with store(path, service) as delayed:
            await delayed.schedule(b"payload", at=BEGIN + 3_600)
            await asyncio.sleep(1)
            leave(path / part)
            with pytest.raises(StoreFailed):
                async with asyncio.timeout(10):
                    await delayed.failed()

    with pytest.raises(StoreFailed, match="was removed, renamed or replaced"):
        await serve()
    assert [record.levelno for record in caplog.records] == [logging.CRITICAL]


async def test_a_message_whose_directory_has_gone_is_not_taken_for_a_damaged_one(
    path: Path, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    async def serve() -> None:
        async with store(path, service) as delayed:
            await delayed.schedule(b"payload", at=BEGIN + 5)
            await asyncio.sleep(1)
            rename(path)
            with pytest.raises(StoreFailed):
                await delayed.failed()

    with pytest.raises(StoreFailed, match="was removed, renamed or replaced"):
        await serve()
    assert "damaged" not in caplog.text
    # It is not lost: the directory only has another name.
    async with store(path.with_name("elsewhere"), service):
        await asyncio.sleep(10)
    assert service.payloads == [b"payload"]


async def test_a_dead_letter_is_not_tried_again_when_the_directory_has_gone(
    path: Path, service: Service
) -> None:
    async def handle(_: object) -> None:
        rename(path)
        raise ValueError

    async def serve() -> None:
        async with store(path, service, attempts=1) as delayed:
            await delayed.schedule(b"payload", at=BEGIN + 1)
            with pytest.raises(StoreFailed):
                async with asyncio.timeout(2):
                    await delayed.failed()

    service.handle = handle
    with pytest.raises(StoreFailed, match="was removed, renamed or replaced"):
        await serve()


async def test_leaving_says_that_the_directory_has_gone(path: Path, service: Service) -> None:
    async def serve() -> None:
        async with store(path, service) as delayed:
            await delayed.schedule(b"payload", at=BEGIN + 60)
            rename(path)

    with pytest.raises(StoreFailed, match="was removed, renamed or replaced"):
        await serve()
