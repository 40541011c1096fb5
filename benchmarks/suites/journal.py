"""The cost to record or count an operation: for the loop, and for the threads that write or send it."""

import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from itertools import product, repeat
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from benchmarks.designs.alternative import TIMEOUT, WAITS_PER_KEY, Tally, signals, targets
from benchmarks.designs.purgatory_waits import PurgatoryCallback
from benchmarks.harness.benchmark import Case, Parts, Sample, Setting, Table, at_sizes, benchmark, spreads
from benchmarks.harness.event_loop import CollectorSetting, run, turns
from purgatory import DelayedOperation
from purgatory.journal import JournalWriter
from purgatory.journal.schema import GAPS
from purgatory.metrics import HistogramObserver
from purgatory.observer import Observer, Timing
from purgatory.otel import WaitHistograms, WaitSpans

# So many are parked, then completed, then the loop iterates.
AT_A_TIME = 1_000
# Rounds with and without the observer, in turns, so that a slow spell falls on both.
ROUNDS = 3


class EmptyObserver:
    """The least cost of an observer: it does nothing."""

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        pass

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        pass


@asynccontextmanager
async def written() -> AsyncIterator[Observer]:
    """A journal in a temporary directory. Raises AssertionError when rows were lost."""
    with tempfile.TemporaryDirectory() as directory:
        async with JournalWriter(directory) as writer:
            yield writer
        gaps = pq.read_table(Path(directory) / GAPS).to_pylist()
        if gaps:
            raise AssertionError(f"the disk is too slow for this: {gaps}")


@asynccontextmanager
async def histograms() -> AsyncIterator[Observer]:
    """The histograms of OpenTelemetry, which nobody collects."""
    provider = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    yield WaitHistograms(provider)
    provider.shutdown()


class Discarding(SpanExporter):
    """Sends the spans nowhere."""

    def export(self, spans: object) -> SpanExportResult:
        return SpanExportResult.SUCCESS


@asynccontextmanager
async def spans() -> AsyncIterator[Observer]:
    """The spans of OpenTelemetry. All are sampled, and discarded in the thread that would send them."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(Discarding()))
    yield WaitSpans(provider)
    provider.shutdown()


Observed = Callable[[], AbstractAsyncContextManager[Observer | None]]
# Each makes an observer, or none, for the length of a block.
OBSERVED: dict[str, Observed] = {
    "purgatory, not observed": nullcontext,
    "purgatory, observer that does nothing": lambda: nullcontext(EmptyObserver()),
    # The observer of a `PurgatoryCollector`.
    "purgatory, metrics": lambda: nullcontext(HistogramObserver()),
    "purgatory, journal": written,
    "purgatory, OpenTelemetry histograms": histograms,
    "purgatory, OpenTelemetry spans": spans,
}


@benchmark(
    "journal",
    "cost of a journal, metrics and traces",
    (100_000,),
    (100_000, 1_000_000),
    time_limit=40.0,
)
def journal(setting: Setting) -> Parts:
    headline = setting.sizes[0]
    yield Table(
        "n operations parked, completed and recorded: microseconds of the loop's thread each",
        setting.growth("loop_us"),
        f"Processor time; {WAITS_PER_KEY} operations per key, {AT_A_TIME:,} pending at a time; "
        "with ten rows of operations goes one of checks.",
    )
    yield Table(
        f"What of it is added, and what other threads take, of {headline:,}: microseconds each",
        spreads(headline, added_us="added", thread_us="other threads"),
        "Added: to the same without observers, measured in turns. Other threads: the journal's, until all is "
        "on the disk, and the one that sends spans.",
    )
    sections = (("one key", 1), ("three keys", 3))
    for build, (section, keys), name in product(setting.builds, sections, OBSERVED):
        # These record nothing of the keys.
        if keys > 1 and "OpenTelemetry" in name:
            continue
        once = partial(measure, setting.loop, OBSERVED[name], keys)
        measured = partial(at_sizes, setting.sizes, once, ["loop_us"])
        yield Case(f"{build}, {section}", name, measured, build)


def measure(loop: str, observed: Observed, keys: int, size: int) -> Sample:
    """Microseconds of each operation: in the loop, the part that the observer adds, and in other threads."""
    samples = [
        [run(loop, _recorded, each, size, keys) for each in (nullcontext, observed)] for _ in range(ROUNDS)
    ]
    sample = {
        "loop_us": statistics.median(own[0] for _, own in samples),
        "thread_us": statistics.median(own[1] for _, own in samples),
    }
    if observed is not nullcontext:
        sample["added_us"] = statistics.median(own[0] - base[0] for base, own in samples)
    return sample


async def _recorded(observed: Observed, size: int, keys: int) -> tuple[float, float]:
    """Of the loop's thread, and of the others."""
    tally = Tally()
    at_a_time = min(size, AT_A_TIME)
    waited_for, signalled = targets(at_a_time, keys), signals(at_a_time, keys)
    requests = range(at_a_time)
    busy = 0.0
    with CollectorSetting.ADVISED.applied():
        async with observed() as observer, PurgatoryCallback(tally, filter(None, [observer])) as alternative:
            begun, begun_here = time.process_time(), time.thread_time()
            for _ in range(size // at_a_time):
                start = time.thread_time()
                tally.ready = False
                alternative.park(requests, waited_for, repeat(TIMEOUT))
                tally.ready = True
                alternative.signal(signalled)
                busy += time.thread_time() - start
                await turns(1)
        others = time.process_time() - begun - (time.thread_time() - begun_here)
    tally.expect(alternative, completed=size // at_a_time * at_a_time)
    return busy / tally.completed * 1e6, max(others, 0.0) / tally.completed * 1e6
