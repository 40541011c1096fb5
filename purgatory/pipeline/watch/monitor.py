"""Turns windows and gaps of a journal into notices. Warns if unusually many or few operations expire."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from purgatory.pipeline.text import duration, printable
from purgatory.pipeline.watch.control_chart import SHIFT_RUN, Assessment, ControlChart
from purgatory.pipeline.watch.notice import (
    INCOMPLETE,
    LATE,
    RECOVERED,
    REFUSED,
    SHIFTED,
    WARNING,
    WINDOW,
    Notice,
    instant,
)

HEADER: Final = (
    "from (UTC)           operations  expired  wait p50  wait p99  late p99  tries/op  kind in purgatory"
)

# The number of latest gaps that are kept to mark the windows that a gap overlaps.
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
    # When the last operation of the window ended.
    latest: int

    @property
    def stratum(self) -> str:
        return f"{printable(self.kind)} in {printable(self.purgatory)}"

    def values(self) -> dict[str, Any]:
        """The window for programs."""
        return {
            "from": instant(self.start),
            "to": instant(self.end),
            "purgatory": self.purgatory,
            "kind": self.kind,
            "operations": self.operations,
            "expired": self.expired,
        }

    def measures(self) -> dict[str, Any]:
        """The measures of the window, for programs."""
        return {
            "wait_p50_us": self.wait_p50_us,
            "wait_p99_us": self.wait_p99_us,
            "lateness_p99_us": self.lateness_p99_us,
            "tries_per_operation": self.tries_per_operation,
        }

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

    def notice(self) -> Notice:
        return Notice(
            INCOMPLETE,
            f"INCOMPLETE {printable(self.node)} lost {self.lost_operations:,} operations and "
            f"{self.lost_checks:,} checks from {_clock(self.began)} to {_clock(self.ended)}",
            {
                "from": instant(self.began),
                "to": instant(self.ended),
                "node": self.node,
                "lost_operations": self.lost_operations,
                "lost_checks": self.lost_checks,
            },
        )


class Monitor:
    """Receives windows while they fill up. Reports each window once, in order, when the window is closed.

    A window is closed when the monitor sees an operation that ended `lateness_us` after the window.
    Operations that come for a closed window are dropped, and counted as late. When a window is closed, the
    `ControlChart` of its kind assesses the share of expired operations.
    """

    def __init__(self, lateness_us: int) -> None:
        self._lateness = lateness_us
        self._open: dict[tuple[int, str, str], Window] = {}
        # All windows that end at or before this instant are closed.
        self.closed_until = 0
        # The numbers of operations that were read, counted in a window, and reported as late.
        self._read = self._counted = self._late = 0
        self._gaps: deque[Gap] = deque(maxlen=_MAX_GAPS)
        self._charts: defaultdict[tuple[str, str], ControlChart] = defaultdict(ControlChart)
        # The strata whose last window was outside the control limits.
        self._outside: set[tuple[str, str]] = set()
        # The open windows, as they were when they were reported last.
        self._reported_open: set[Window] = set()

    def __repr__(self) -> str:
        return f"<Monitor: {len(self._open)} windows open, {len(self._charts)} strata>"

    def update(self, windows: Sequence[Window]) -> Iterator[Notice]:
        """Accept the current state of some windows, and report the windows that are closed now."""
        for window in windows:
            if window.end > self.closed_until:
                name = (window.start, window.purgatory, window.kind)
                before = self._open.get(name)
                self._counted += window.operations - (before.operations if before else 0)
                self._open[name] = window
        latest = max((window.latest for window in windows), default=0)
        self.closed_until = max(self.closed_until, latest - self._lateness)
        for name, window in sorted(self._open.items()):
            if window.end <= self.closed_until:
                del self._open[name]
                yield from self._close(window)
        self._reported_open.intersection_update(self._open.values())

    def record_read(self, operations: int) -> Iterator[Notice]:
        """Count operations that were read, and report operations that are in no window: they came too late.

        Call this method after the `update` with the windows of the operations. Other updates may come in
        between. Then the next call reports some of the late operations.
        """
        self._read += operations
        late = self._read - self._counted - self._late
        if late > 0:
            self._late += late
            yield Notice(
                LATE,
                f"LATE {_operations(late)} that ended before {_clock(self.closed_until)} came after their "
                "windows were closed, and are not counted; use a longer --lateness to wait for them",
                {"operations": late, "closed_until": instant(self.closed_until)},
            )

    def record_gaps(self, gaps: Sequence[Gap]) -> Iterator[Notice]:
        """Report gaps. An open window that a gap overlaps is marked as incomplete."""
        self._gaps.extend(gaps)
        return (gap.notice() for gap in gaps)

    def report_rejected(self, files: int, rows: int, example: str) -> Iterator[Notice]:
        """Report files that cannot be read and rows that cannot be right, with one reason."""
        yield Notice(
            REFUSED,
            f"REFUSED {files:,} unreadable files and {rows:,} rows, such as: {printable(example)}; "
            "purgatory-pipeline compact lists all reasons",
            {"files": files, "rows": rows, "example": example},
        )

    def open_windows(self) -> Iterator[Notice]:
        """Report the open windows that have changed since they were last reported."""
        for _, window in sorted(self._open.items()):
            if window not in self._reported_open:
                self._reported_open.add(window)
                yield self._notice(window, ", so far", closed=False)

    def _close(self, window: Window) -> Iterator[Notice]:
        yield self._notice(window, "", closed=True)
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
            text = f"SHIFTED {ratio}; {SHIFT_RUN} windows were outside the limits, and are the new baseline"
            yield Notice(SHIFTED, text, window.values())
        elif assessment.outside and stratum not in self._outside:
            self._outside.add(stratum)
            text = f"WARNING {ratio}, outside the control limits, {_limits(assessment)}"
            yield Notice(WARNING, text, window.values() | _limit_values(assessment))
        elif not assessment.outside and stratum in self._outside:
            self._outside.remove(stratum)
            text = f"RECOVERED {ratio}, inside the control limits again, {_limits(assessment)}"
            yield Notice(RECOVERED, text, window.values() | _limit_values(assessment))

    def _notice(self, window: Window, note: str, *, closed: bool) -> Notice:
        incomplete = any(gap.began < window.end and gap.ended >= window.start for gap in self._gaps)
        state = {"closed": closed, "incomplete": incomplete}
        text = f"{window}{note}{' (incomplete)' if incomplete else ''}"
        return Notice(WINDOW, text, window.values() | window.measures() | state)


def _limit_values(assessment: Assessment) -> dict[str, Any]:
    """The control limits, and the ratio of the baseline, for programs."""
    low, high = assessment.limits
    return {"fewest": low, "most": high, "usual_share": assessment.center}


def _operations(number: int) -> str:
    return f"{number:,} operation{'' if number == 1 else 's'}"


def _limits(assessment: Assessment) -> str:
    low, high = (_percent(count, assessment.operations) for count in assessment.limits)
    return f"{low} to {high} around {100 * assessment.center:.1f} %"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def _clock(microseconds: int) -> str:
    return f"{datetime.fromtimestamp(microseconds // 1_000_000, UTC):%Y-%m-%d %H:%M:%S}"
