"""One of the processes that wait and send. The benchmark gives it commands, one line of JSON each."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

# Seconds after which a signal that was refused is sent again.
AGAIN = 0.05
# Seconds until everything that was begun has come to rest.
SETTLED = 1.0
Woken = Callable[[str, float], None]


class Carrier(ABC):
    """One worker's end. Used as a context manager, which connects to the servers at `urls`, by their names.

    A record is the time at which it was sent. `woken` is to be called, in the task or the callback of the
    wait, with the topic and the record that have ended it.
    """

    def __init__(self, urls: Mapping[str, str], woken: Woken) -> None:
        self.urls = urls
        self.woken = woken

    async def __aenter__(self) -> Self:
        return self

    @abstractmethod
    async def __aexit__(self, *exception: Any) -> None: ...

    @abstractmethod
    async def wait_for(self, topics: Sequence[str]) -> None:
        """Begin a wait for the next record of each topic. Return when signals reach this worker."""

    @abstractmethod
    async def send(self, topic: str, record: float) -> None:
        """End the waits for `topic`, in whatever worker they are. Raises what the client raises."""


@dataclass(frozen=True)
class Plan:
    """Each topic has one wait, and gets one record, from any of the workers, in random order."""

    workers: int
    topics: int
    # Records in a second, of all workers together.
    rate: float

    def waits(self, number: int) -> list[str]:
        """The topics that a worker waits for."""
        return [f"topic-{topic}" for topic in range(number, self.topics, self.workers)]

    def records(self, number: int) -> list[tuple[float, str]]:
        """The topics that a worker sends a record for, each with the seconds from the beginning."""
        choose = random.Random(self.topics)
        topics = choose.sample(range(self.topics), self.topics)
        senders = choose.choices(range(self.workers), k=self.topics)
        return [
            (turn / self.rate, f"topic-{topic}")
            for turn, (topic, sender) in enumerate(zip(topics, senders, strict=True))
            if sender == number
        ]


@dataclass
class Round:
    """The waits of one worker, from when records are sent."""

    start: float
    waiting: set[str]
    milliseconds: list[float] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def woken(self, topic: str, record: float) -> None:
        # Some carriers bring a record twice, or late.
        if topic in self.waiting and record >= self.start:
            self.waiting.remove(topic)
            self.milliseconds.append((time.monotonic() - record) * 1e3)
            if not self.waiting:
                self.over.set()

    async def send(self, carrier: Carrier, records: Sequence[tuple[float, str]], until: float) -> None:
        """Send them, each at its time. Return when the waits of this worker are over, or at `until`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(until - time.monotonic()), asyncio.TaskGroup() as tasks:
                for after, topic in records:
                    await asyncio.sleep(self.start + after - time.monotonic())
                    tasks.create_task(self._send_one(carrier, topic))
                await self.over.wait()

    async def _send_one(self, carrier: Carrier, topic: str) -> None:
        record = time.monotonic()
        while True:
            try:
                await carrier.send(topic, record)
                return
            except Exception:  # each client has its own
                await asyncio.sleep(AGAIN)


async def serve(kind: type[Carrier], urls: dict[str, str], plan: Plan, number: int) -> None:
    """Obey the commands on stdin until it ends."""
    # Some carriers log each lost connection with a traceback.
    logging.disable()
    loop = asyncio.get_running_loop()
    round = Round(0.0, set())

    def woken(topic: str, record: float) -> None:
        round.woken(topic, record)

    async with kind(urls, woken) as carrier:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            command = json.loads(line)
            answer: dict[str, Any] = {}
            began = time.process_time()
            if command["do"] == "wait":
                await carrier.wait_for(plan.waits(number))
                await asyncio.sleep(SETTLED)
            else:
                round = Round(command["start"], set(plan.waits(number)))
                await round.send(carrier, plan.records(number), command["until"])
                answer = {"milliseconds": round.milliseconds, "lost": len(round.waiting)}
            print(json.dumps({**answer, "processor_seconds": time.process_time() - began}), flush=True)
