"""Walks along a plan in real time: an open loop, which waits for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from benchmarks.load.plan import Plan
from benchmarks.load.subject import R, Subject

# How far arrivals may fall behind, in seconds, before the design counts as saturated.
BEHIND = 0.1
# Arrivals and completions in one go: about half a millisecond's work for a fast design. Then the event loop
# goes round, in which the design's own timers get their turn.
BATCH = 128
# Seconds to sleep when nothing is due. The poll of an event loop does not take less either.
PAUSE = 0.001
# Seconds after the last timeout until what has not ended is given up, on however slow a machine.
PATIENCE = 60.0


@dataclass(frozen=True)
class Walk:
    """What a walk along a plan came to, in seconds by the clock it was given."""

    sent: int
    started: float
    # When the last one completed, or arrived.
    over: float
    # By how much the last arrival came later than planned.
    behind: float


async def walk(plan: Plan, subject: Subject[R], clock: Callable[[], float]) -> Walk:
    """Offer every request when it arrives, and complete it when that is due, all in the plan's order.

    Where the subject cannot keep up everything is put off, completions like arrivals, so that meanwhile as
    much is pending as planned, or more. A walk that is more than `BEHIND` when its time is over ends there:
    only what has been sent is then completed. It would else take the longer the more overloaded it is.
    """
    arrivals, completions, completing, completes = (
        plan.arrivals,
        plan.completions,
        plan.completing,
        plan.completes,
    )
    arrived_at, offer, complete = subject.ends.arrived_at, subject.offer, subject.complete
    waiting: list[R | None] = [None] * len(plan)
    sent = done = 0
    arrival, completion = arrivals[0], completions[0]
    started = over = clock()
    while arrival < inf or completion < inf:
        now = clock() - started
        if now > plan.seconds + BEHIND:
            arrival = inf
        for _ in range(BATCH):
            if arrival <= completion:
                if arrival > now:
                    break
                arrived_at[sent] = clock()
                request = offer(sent)
                # What is going to expire is the subject's alone.
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
                    complete(due)
                done += 1
                completion = completions[done]
        else:
            over = clock()
            await asyncio.sleep(0)
            continue
        over = clock()
        await asyncio.sleep(PAUSE)
    return Walk(sent, started, over, arrived_at[sent - 1] - started - arrivals[sent - 1])


async def expirations(plan: Plan, subject: Subject[R], sent: int, clock: Callable[[], float]) -> None:
    """Wait until all that were sent have ended. Raises AssertionError when they do not."""
    limit = clock() + plan.timeout + PATIENCE
    # An event would have to be looked at by each end.
    while subject.ends.ended < sent and clock() < limit:  # noqa: ASYNC110  # see above
        await asyncio.sleep(PAUSE)
    subject.ends.check(sent)
