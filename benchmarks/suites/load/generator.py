"""The generator of the load. It follows a plan in real time. It is an open loop: it waits for no request."""

import asyncio
from array import array
from collections.abc import Callable
from math import inf
from typing import Any

from benchmarks.designs.alternative import Tally
from benchmarks.suites.load.plan import Plan

# A generator that is so many milliseconds late at the end of its time sends no more.
BEHIND_MS = 100.0
# Arrivals and completions in one batch: about half a millisecond's work for a fast design. Then the event
# loop iterates, in which the design's own timers run.
BATCH = 128
# Seconds to sleep when nothing is due. The poll of an event loop takes no less.
PAUSE = 0.001
# Seconds after the last timeout until requests that have not ended are given up.
PATIENCE = 60.0


class Generator(Tally):
    """Follows a plan, and counts how its requests end.

    No condition ever holds, so no check completes a request. All times are those of the clock.
    """

    __slots__ = ("arrived_at", "clock", "expired_at", "over", "plan", "sent", "started", "times")

    def __init__(self, plan: Plan, clock: Callable[[], float]) -> None:
        super().__init__()
        self.plan = plan
        self.clock = clock
        # All of them have their full size from the beginning: what grows in the run is the design's.
        self.arrived_at = array("d", bytes(8 * len(plan)))
        self.expired_at = array("d", bytes(8 * len(plan)))
        # How often each request has ended.
        self.times = bytearray(len(plan))
        self.sent = 0
        # `over` is when the last request completed, or arrived.
        self.started = self.over = 0.0

    def end(self, request: int) -> None:
        """Count that the request has completed or expired just now."""
        self.times[request] += 1
        self.completed += 1

    def expire(self, request: int) -> None:
        """Count that the timeout ended the request, which `end` has counted."""
        self.expired_at[request] = self.clock()
        self.expired += 1

    async def walk(self, offer: Callable[[int], Any], end: Callable[[Any], object]) -> None:
        """Offer every request when it arrives, and end it when that is due, all in the plan's order.

        Where the design cannot keep up everything is put off, completions like arrivals, so that meanwhile
        as much is pending as planned, or more. A walk that is more than `BEHIND_MS` late when its time is
        over ends there, and only the requests that have been sent are completed: otherwise the walk would
        take longer the more overloaded the design is.
        """
        plan, clock, arrived_at = self.plan, self.clock, self.arrived_at
        arrivals, completions, completing = plan.arrivals, plan.completions, plan.completing
        completes = plan.completes
        waiting: list[Any] = [None] * len(plan)
        sent = done = 0
        arrival, completion = arrivals[0], completions[0]
        started = over = clock()
        while arrival < inf or completion < inf:
            now = clock() - started
            if now > plan.seconds + BEHIND_MS / 1e3:
                arrival = inf
            for _ in range(BATCH):
                if arrival <= completion:
                    if arrival > now:
                        break
                    arrived_at[sent] = clock()
                    request = offer(sent)
                    # The design alone holds the requests that are going to expire.
                    if completes[sent]:
                        waiting[sent] = request
                    sent += 1
                    arrival = arrivals[sent]
                else:
                    if completion > now:
                        break
                    number = completing[done]
                    due = waiting[number]
                    if due is not None:
                        waiting[number] = None
                        end(due)
                    done += 1
                    completion = completions[done]
            else:
                over = clock()
                await asyncio.sleep(0)
                continue
            over = clock()
            await asyncio.sleep(PAUSE)
        self.sent, self.started, self.over = sent, started, over

    async def expirations(self) -> None:
        """Wait until all requests that were sent have ended.

        Raises AssertionError unless each of them has ended once, and no other.
        """
        limit = self.clock() + self.plan.timeout + PATIENCE
        # An event would have to be checked at the end of each request.
        while self.completed < self.sent and self.clock() < limit:  # noqa: ASYNC110  # see above
            await asyncio.sleep(PAUSE)
        once = self.times.count(1)
        if not self.completed == self.sent == once:
            raise AssertionError(f"{once} of {self.sent} requests ended once, of {self.completed} ends")

    def figures(self, seconds: float, cpu_seconds: float) -> dict[str, float]:
        """What any run tells, where the requests took so many seconds."""
        last = self.sent - 1
        behind = self.arrived_at[last] - self.started - self.plan.arrivals[last]
        return {
            "achieved": self.sent / seconds,
            "behind_ms": behind * 1e3,
            "sent": self.sent,
            "cpu_seconds": cpu_seconds,
        }
