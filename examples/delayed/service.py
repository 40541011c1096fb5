"""An instance of the service, of any design."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict
from typing import Final

import anyio
from anyio.abc import TaskStatus

from examples.delayed.cancellations import Cancellations
from examples.delayed.forwarder import Forwarder, Statistics
from examples.delayed.levels import levels
from examples.delayed.producer import Producer
from examples.delayed.requeue import requeue
from examples.delayed.settings import Settings
from examples.delayed.wheel.instance import wheel

# Seconds that a stop may take.
_GRACE: Final = 20.0
# Seconds between two lines of counts.
_REPORT: Final = 0.5


# Each forwards records until a stop, and reports that it has started when it takes part in its group.
DESIGNS: Final = {"requeue": requeue, "levels": levels, "wheel": wheel}


async def serve(
    design: str,
    settings: Settings,
    statistics: Statistics,
    stop: anyio.Event,
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Run an instance of a design until `stop`. What it has forwarded is acknowledged when this returns."""
    async with (
        Producer.running(settings.bootstrap) as producer,
        Cancellations.running(settings) as cancellations,
    ):
        forwarder = Forwarder(producer, cancellations, settings.topics, statistics)
        await DESIGNS[design](settings, forwarder, stop, task_status=task_status)


async def serve_until_signal(design: str, settings: Settings, name: str, *, counts: bool) -> None:
    """Run an instance, and say when it serves and has stopped. With `counts`, print counts as JSON.

    Raises TimeoutError if the cluster does not acknowledge what was sent last, or at a second signal.
    """
    stop, statistics = anyio.Event(), Statistics()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_wait_for_signal, stop)
        if counts:
            tasks.start_soon(_report, statistics)
        async with anyio.create_task_group() as service:
            await service.start(serve, design, settings, statistics, stop)
            # One line for scripts.
            print(f"{name} serves", flush=True)
        tasks.cancel_scope.cancel()
    if counts:
        _print(statistics)
    print(f"{name} has stopped", flush=True)


async def _wait_for_signal(stop: anyio.Event) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            stop.set()
            break
        # Without the cluster, nothing that was sent is ever acknowledged. Another signal ends it at once.
        with anyio.move_on_after(_GRACE):
            async for _ in signals:
                break
    raise TimeoutError("what was sent last is not acknowledged: the next instances may send it again")


async def _report(statistics: Statistics) -> None:
    while True:
        _print(statistics)
        await anyio.sleep(_REPORT)


def _print(statistics: Statistics) -> None:
    print(json.dumps(asdict(statistics)), flush=True)
