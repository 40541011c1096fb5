"""One run of one design: follows a plan, and measures."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.load.generator import expirations, walk
from benchmarks.load.growth import resident_sizes
from benchmarks.load.measurement import Measurement, percentile
from benchmarks.load.plan import Plan
from benchmarks.load.subject import Ends, Nothing, Subject


async def measure(
    subject_type: type[Subject[Any]], plan: Plan, clock: Callable[[], float] = time.monotonic
) -> Measurement:
    """Put a design under the load of `plan`. Raises AssertionError when requests do not end exactly once."""
    ends = Ends(len(plan), clock)
    gc.collect()
    with resident_sizes() as sizes:
        before = time.process_time()
        async with subject_type(ends, plan.timeout, plan.keys) as subject:
            walked = await walk(plan, subject, clock)
            await expirations(plan, subject, walked.sent, clock)
            spent = time.process_time() - before
            held = subject.held
    over = max(walked.over, max(ends.expired_at))
    measurement = Measurement(
        achieved=walked.sent / (over - walked.started - plan.tail(walked.sent)),
        behind_ms=walked.behind * 1e3,
        sent=walked.sent,
        completed=ends.ended - ends.expired,
        expired=ends.expired,
        cpu_seconds=spent,
        held=held,
        rss_mb=(max(sizes) - sizes[0]) / 1e6 if sizes else None,
    )
    if not ends.expired:
        return measurement
    late = ends.lateness(plan.timeout)
    return replace(
        measurement, late_p50_ms=percentile(late, 50) * 1e3, late_p99_ms=percentile(late, 99) * 1e3
    )


async def measure_generator(plan: Plan, clock: Callable[[], float] = time.monotonic) -> Measurement:
    """Walk along `plan` with no design at all: what it takes is the generator's part in any run."""
    ends = Ends(len(plan), clock)
    gc.collect()
    before = time.process_time()
    walked = await walk(plan, Nothing(ends, plan.timeout, plan.keys), clock)
    return Measurement(
        achieved=walked.sent / (plan.arrivals[walked.sent - 1] + walked.behind),
        behind_ms=walked.behind * 1e3,
        sent=walked.sent,
        cpu_seconds=time.process_time() - before,
    )
