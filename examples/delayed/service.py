"""An instance of the service."""

from __future__ import annotations

from typing import Final, Protocol

import anyio
from anyio.abc import TaskStatus

from examples.delayed.cancellations import Cancellations
from examples.delayed.forwarder import Forwarder
from examples.delayed.levels import levels
from examples.delayed.producer import Producer
from examples.delayed.requeue import requeue
from examples.delayed.settings import Settings
from examples.delayed.statistics import Statistics
from examples.delayed.wheel.instance import wheel


class Design(Protocol):
    """Forwards records until `stop`. Reports that it has started when it takes part in the group."""

    async def __call__(
        self, settings: Settings, forwarder: Forwarder, stop: anyio.Event, *, task_status: TaskStatus[None]
    ) -> None: ...


DESIGNS: Final[dict[str, Design]] = {"requeue": requeue, "levels": levels, "wheel": wheel}


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
