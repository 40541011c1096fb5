"""What purgatories do, for Prometheus. Needs the extra ``metrics``."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from purgatory import DelayedOperation, OperationState, Purgatory
from purgatory.observer import Timing

# Powers of two of a millisecond, which is the usual tick, up to four minutes. What expires has waited for a
# little more than its timeout, so were 30 s a bound it would count as a minute's wait; between 16.4 and 32.8
# it is told to a factor of two, as all else is.
WAIT_BOUNDS: Final = tuple(2**power / 1000 for power in range(19))
# From a quarter of a tick: an idle loop is late by less than one, a busy one by a slice (5 ms) or so, and one
# that somebody blocks by as long as that takes.
LATENESS_BOUNDS: Final = tuple(2**power / 1000 for power in range(-2, 13))

_COMPLETED: Final = OperationState.COMPLETED
_EXPIRED: Final = OperationState.EXPIRED
_CANCELLED: Final = OperationState.CANCELLED


class Journal(Protocol):
    """What a journal tells of the rows it could not keep."""

    @property
    def lost_operations(self) -> int: ...

    @property
    def lost_checks(self) -> int: ...


class PurgatoryCollector(Collector):
    """Shows the figures of some purgatories to a registry of prometheus_client.

    ``REGISTRY.register(PurgatoryCollector(purgatory))`` shows what `Purgatory.statistics` counts and, from
    then on, how long its operations waited and how late they expired: it observes them. With a `journal`, it
    shows what that has lost.

    The only labels are names of purgatories, outcomes and tables: no key ever becomes one. An operation that
    ends costs the loop less than a microsecond (`python -m benchmarks journal`); all else is done when
    somebody scrapes, in any thread. The figures of one scrape are not of one instant: each is right, and one
    operation that ends meanwhile may be counted here and not yet there.

    Raises ValueError for two purgatories of the same name: they would be one series.
    """

    def __init__(self, *purgatories: Purgatory, journal: Journal | None = None) -> None:
        self._purgatories: dict[str, tuple[Purgatory, Endings]] = {}
        self._journal = journal
        for purgatory in purgatories:
            self.add(purgatory)

    def __repr__(self) -> str:
        return f"<PurgatoryCollector {list(self._purgatories)}>"

    def add(self, purgatory: Purgatory) -> None:
        """Show this one, too. Raises ValueError when there is one of its name."""
        if purgatory.name in self._purgatories:
            raise ValueError(f"a purgatory {purgatory.name!r} is collected already: name them apart")
        endings = Endings()
        self._purgatories[purgatory.name] = purgatory, endings
        purgatory.add_observer(endings)

    def collect(self) -> Iterator[Metric]:
        """All metrics as they are now; from any thread."""
        yield from self._counts()
        yield from self._histograms()
        if self._journal is not None:
            lost = CounterMetricFamily(
                "purgatory_journal_lost_rows", "Rows that the journal is missing.", labels=["table"]
            )
            lost.add_metric(["operations"], self._journal.lost_operations)
            lost.add_metric(["checks"], self._journal.lost_checks)
            yield lost

    # A registry that is asked to would otherwise not see that it has one of these already.
    describe = collect

    def _counts(self) -> list[Metric]:
        named = ["purgatory"]
        operations = CounterMetricFamily(
            "purgatory_operations", "Operations that have ended.", labels=[*named, "outcome"]
        )
        pending = GaugeMetricFamily("purgatory_pending", "Operations that wait.", labels=named)
        watched = GaugeMetricFamily(
            "purgatory_watched", "Operations that wait, each once for every key it watches.", labels=named
        )
        keys = GaugeMetricFamily("purgatory_keys", "Keys that some operation watches.", labels=named)
        wakeups = CounterMetricFamily(
            "purgatory_timer_wakeups", "How often the event loop's timer has woken the reaper.", labels=named
        )
        slices = CounterMetricFamily(
            "purgatory_slices", "How often work in bulk has paused, because its slice was over.", labels=named
        )
        for name, (purgatory, _) in list(self._purgatories.items()):
            statistics = purgatory.statistics()
            operations.add_metric([name, "completed"], statistics.completed)
            operations.add_metric([name, "expired"], statistics.expired)
            operations.add_metric([name, "cancelled"], statistics.cancelled)
            operations.add_metric([name, "failed"], statistics.failed)
            pending.add_metric([name], statistics.pending)
            watched.add_metric([name], statistics.watched)
            keys.add_metric([name], statistics.keys)
            wakeups.add_metric([name], statistics.wakeups)
            slices.add_metric([name], statistics.slices)
        return [operations, pending, watched, keys, wakeups, slices]

    def _histograms(self) -> list[Metric]:
        waits = HistogramMetricFamily(
            "purgatory_wait_seconds",
            "From when an operation was offered until its hooks had run.",
            labels=["purgatory", "outcome"],
        )
        lateness = HistogramMetricFamily(
            "purgatory_lateness_seconds",
            "From the deadline of an operation that expired until its hooks had run.",
            labels=["purgatory"],
        )
        for name, (_, endings) in list(self._purgatories.items()):
            waits.add_metric([name, "completed"], *endings.completed.shown())
            waits.add_metric([name, "expired"], *endings.expired.shown())
            waits.add_metric([name, "cancelled"], *endings.cancelled.shown())
            waits.add_metric([name, "failed"], *endings.failed.shown())
            lateness.add_metric([name], *endings.lateness.shown())
        return [waits, lateness]


class Endings:
    """Observes how the operations of one purgatory end: their waits, by outcome, and their lateness."""

    __slots__ = ("cancelled", "completed", "expired", "failed", "lateness")

    def __init__(self) -> None:
        self.completed = Histogram(WAIT_BOUNDS)
        self.expired = Histogram(WAIT_BOUNDS)
        self.cancelled = Histogram(WAIT_BOUNDS)
        self.failed = Histogram(WAIT_BOUNDS)
        self.lateness = Histogram(LATENESS_BOUNDS)

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        state = operation.state
        # No dict of the four: an enum's members are slow to hash.
        if state is _COMPLETED:
            waits = self.completed
        elif state is _EXPIRED:
            waits = self.expired
            deadline = operation.deadline
            # One that closing has ended, or that was only tried, had no deadline to be late for.
            if deadline is not None and timing.ended >= deadline:
                self.lateness.count(timing.ended - deadline)
        elif state is _CANCELLED:
            waits = self.cancelled
        else:
            waits = self.failed
        waits.count(timing.ended - timing.offered)

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        """Nothing of it is shown."""


class Histogram:
    """Counts seconds by the first of some bounds that they do not exceed.

    (prometheus_client's own takes a lock for each figure, which is several times as slow. Here one thread
    counts, the loop's, and the others read.)
    """

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def count(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def shown(self) -> tuple[list[tuple[str, float]], float]:
        """The buckets as Prometheus wants them, each with all that is below it; and the sum."""
        buckets: list[tuple[str, float]] = []
        total = 0
        # Copied in one go, so that no bucket has more than those above it.
        for bound, count in zip([*map(str, self._bounds), "+Inf"], self._counts.copy(), strict=True):
            total += count
            buckets.append((bound, total))
        return buckets, self._sum
