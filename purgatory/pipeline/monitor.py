"""Turns windows and gaps of a journal into lines of output, with warnings when more operations expire."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from purgatory.pipeline.advice import duration
from purgatory.pipeline.control_chart import SHIFT_RUN, Assessment, ControlChart

HEADER: Final = (
    "from (UTC)           operations  expired  wait p50  wait p99  late p99  tries/op  kind in purgatory"
)

# The number of latest gaps that are kept, to mark the windows that they overlap.
_MAX_GAPS: Final = 1000


@dataclass(frozen=True, slots=True)
class Window:
    """The operations of a kind that ended in an interval of time. Instants are in microseconds since 1970.

    A window is open while operations may still be added to it.
    """

    start: int
    end: int
    purgatory: str
    kind: str
    operations: int
    expired: int
    wait_p50_us: float
    wait_p99_us: float
    lateness_p99_us: float | None
    tries_per_operation: float
    # When the last operation ended.
    latest: int

    @property
    def stratum(self) -> str:
        return f"{_printable(self.kind)} in {_printable(self.purgatory)}"

    def __str__(self) -> str:
        lateness = "" if self.lateness_p99_us is None else duration(self.lateness_p99_us)
        return (
            f"{_clock(self.start)}  {self.operations:10,}  {_percent(self.expired, self.operations):>7}"
            f"  {duration(self.wait_p50_us):>8}  {duration(self.wait_p99_us):>8}  {lateness:>8}"
            f"  {self.tries_per_operation:8.2f}  {self.stratum}"
        )


@dataclass(frozen=True, slots=True)
class Gap:
    """An interval of time in which a node lost rows of a journal. Instants are in microseconds since 1970."""

    node: str
    began: int
    ended: int
    lost_operations: int
    lost_checks: int

    def __str__(self) -> str:
        return (
            f"INCOMPLETE {_printable(self.node)} lost {self.lost_operations:,} operations and "
            f"{self.lost_checks:,} checks from {_clock(self.began)} to {_clock(self.ended)}"
        )


class Monitor:
    """Receives windows while they fill up, and reports each once, in order, when it is closed.

    A window is closed when an operation is seen that ended `lateness_us` after the window. Operations that
    come for a closed window are dropped; one line reports that they came too late. When a window is closed,
    the `ControlChart` of its kind assesses the share of expired operations.
    """

    def __init__(self, lateness_us: int) -> None:
        self._lateness = lateness_us
        self._open: dict[tuple[int, str, str], Window] = {}
        # All windows that end at or before this instant are closed.
        self._closed_until = 0
        self._gaps: deque[Gap] = deque(maxlen=_MAX_GAPS)
        self._charts: defaultdict[tuple[str, str], ControlChart] = defaultdict(ControlChart)
        # The strata whose last window was outside the control limits.
        self._outside: set[tuple[str, str]] = set()
        # Open windows, as they were when last reported.
        self._reported_open: set[Window] = set()

    def __repr__(self) -> str:
        return f"<Monitor: {len(self._open)} windows open, {len(self._charts)} strata>"

    def update(self, windows: Sequence[Window]) -> Iterator[str]:
        """Accept the current state of windows, and report those that are closed by it."""
        if any(window.end <= self._closed_until for window in windows):
            yield from self.report_late()
        for window in windows:
            if window.end > self._closed_until:
                self._open[window.start, window.purgatory, window.kind] = window
        latest = max((window.latest for window in windows), default=0)
        self._closed_until = max(self._closed_until, latest - self._lateness)
        for name, window in sorted(self._open.items()):
            if window.end <= self._closed_until:
                del self._open[name]
                yield from self._close(window)
        self._reported_open.intersection_update(self._open.values())

    def record_gaps(self, gaps: Sequence[Gap]) -> Iterator[str]:
        """Report gaps. Open windows that they overlap are marked as incomplete."""
        self._gaps.extend(gaps)
        return map(str, gaps)

    def report_rejected(self, files: int, rows: int, example: str) -> Iterator[str]:
        """Report files that cannot be read and rows that cannot be right, with one reason."""
        yield (
            f"REFUSED {files:,} unreadable files and {rows:,} rows, such as: {_printable(example)}; "
            "purgatory-pipeline compact lists all reasons"
        )

    def report_late(self) -> Iterator[str]:
        """Report that operations came too late."""
        yield (
            f"LATE operations that ended before {_clock(self._closed_until)} came after their windows were "
            "closed, and are not counted; use a longer --lateness to wait for them"
        )

    def open_windows(self) -> Iterator[str]:
        """Report the open windows that have changed since they were last reported."""
        for _, window in sorted(self._open.items()):
            if window not in self._reported_open:
                self._reported_open.add(window)
                yield f"{window}, so far{self._incomplete(window)}"

    def _close(self, window: Window) -> Iterator[str]:
        yield f"{window}{self._incomplete(window)}"
        stratum = (window.purgatory, window.kind)
        assessment = self._charts[stratum].assess(window.expired, window.operations)
        if assessment is None:
            return
        ratio = (
            f"{_clock(window.start)} {window.stratum}: {_percent(window.expired, window.operations)} of "
            f"{window.operations:,} expired"
        )
        if assessment.shifted:
            self._outside.discard(stratum)
            yield f"SHIFTED {ratio}; {SHIFT_RUN} windows were outside the limits, and are the new baseline"
        elif assessment.outside and stratum not in self._outside:
            self._outside.add(stratum)
            yield f"WARNING {ratio}, outside the control limits, {_limits(assessment)}"
        elif not assessment.outside and stratum in self._outside:
            self._outside.remove(stratum)
            yield f"RECOVERED {ratio}, inside the control limits again, {_limits(assessment)}"

    def _incomplete(self, window: Window) -> str:
        overlaps = any(gap.began < window.end and gap.ended >= window.start for gap in self._gaps)
        return " (incomplete)" if overlaps else ""


def _limits(assessment: Assessment) -> str:
    low, high = (_percent(count, assessment.operations) for count in assessment.limits)
    return f"{low} to {high} around {100 * assessment.center:.1f} %"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def _clock(microseconds: int) -> str:
    return f"{datetime.fromtimestamp(microseconds // 1_000_000, UTC):%Y-%m-%d %H:%M:%S}"


def _printable(name: str) -> str:
    """The name without line breaks and control characters, which a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)
