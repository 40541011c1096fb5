"""Who watches a journal, and what they have to say."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from purgatory.pipeline.advice import duration
from purgatory.pipeline.control_chart import PATIENCE, ControlChart, Judgement

HEADER: Final = (
    "from (UTC)           operations  expired  wait p50  wait p99  late p99  tries/op  kind in purgatory"
)

# The latest ones, to mark the windows that they touch.
_GAPS: Final = 1000


@dataclass(frozen=True, slots=True)
class Window:
    """What of a kind ended in a stretch of time; so far, until it is closed. Instants are microseconds."""

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
    # When the last of them ended.
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
    """A stretch of time of which a journal lacks rows. Instants are microseconds."""

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
    """Hears of windows as they fill up, and tells of each once, in order, when it is closed.

    A window is closed when an operation was seen that ended `lateness_us` after the window did. What comes
    for it after that is not told, except that it came too late. When it is closed, its expiry ratio is judged
    by the `ControlChart` of its kind.
    """

    def __init__(self, lateness_us: int) -> None:
        self._lateness = lateness_us
        self._open: dict[tuple[int, str, str], Window] = {}
        # Before which all windows are closed.
        self._closed = 0
        self._gaps: deque[Gap] = deque(maxlen=_GAPS)
        self._bands: defaultdict[tuple[str, str], ControlChart] = defaultdict(ControlChart)
        # The strata that were outside of their bands when last told of.
        self._outside: set[tuple[str, str]] = set()
        # Windows that were told of before they were closed, as they were then.
        self._told_open: set[Window] = set()

    def __repr__(self) -> str:
        return f"<Monitor: {len(self._open)} windows open, {len(self._bands)} strata>"

    def hear(self, windows: Sequence[Window]) -> Iterator[str]:
        """Take in windows as they are now, and tell of those that this closes."""
        if any(window.end <= self._closed for window in windows):
            yield from self.late()
        for window in windows:
            if window.end > self._closed:
                self._open[window.start, window.purgatory, window.kind] = window
        latest = max((window.latest for window in windows), default=0)
        self._closed = max(self._closed, latest - self._lateness)
        for name, window in sorted(self._open.items()):
            if window.end <= self._closed:
                del self._open[name]
                yield from self._tell(window)
        self._told_open.intersection_update(self._open.values())

    def lose(self, gaps: Sequence[Gap]) -> Iterator[str]:
        """Mark the windows that they touch, as long as these are open."""
        self._gaps.extend(gaps)
        return map(str, gaps)

    def refuse(self, files: int, rows: int, example: str) -> Iterator[str]:
        """Of what could not be read or cannot be true, with the reason of one."""
        yield (
            f"REFUSED {files:,} unreadable files and {rows:,} rows, such as: {_printable(example)}; "
            "purgatory-pipeline compact tells of each"
        )

    def late(self) -> Iterator[str]:
        """Of operations that came too late."""
        yield (
            f"LATE operations that ended before {_clock(self._closed)} came after their windows were closed, "
            "and are not counted; a longer --lateness waits for them"
        )

    def so_far(self) -> Iterator[str]:
        """The windows that are open, if they have changed since they were last told of."""
        for _, window in sorted(self._open.items()):
            if window not in self._told_open:
                self._told_open.add(window)
                yield f"{window}, so far{self._incomplete(window)}"

    def _tell(self, window: Window) -> Iterator[str]:
        yield f"{window}{self._incomplete(window)}"
        stratum = (window.purgatory, window.kind)
        judgement = self._bands[stratum].judge(window.expired, window.operations)
        if judgement is None:
            return
        said = (
            f"{_clock(window.start)} {window.stratum}: {_percent(window.expired, window.operations)} of "
            f"{window.operations:,} expired"
        )
        if judgement.settled:
            self._outside.discard(stratum)
            yield f"SETTLED {said}; {PATIENCE} windows were outside its band, and are its usual from now on"
        elif judgement.outside and stratum not in self._outside:
            self._outside.add(stratum)
            yield f"WARNING {said}, outside its usual band, {_band(judgement)}"
        elif not judgement.outside and stratum in self._outside:
            self._outside.remove(stratum)
            yield f"BACK {said}, inside its usual band again, {_band(judgement)}"

    def _incomplete(self, window: Window) -> str:
        touched = any(gap.began < window.end and gap.ended >= window.start for gap in self._gaps)
        return " (incomplete)" if touched else ""


def _band(judgement: Judgement) -> str:
    low, high = (_percent(count, judgement.operations) for count in judgement.limits)
    return f"{low} to {high} around {100 * judgement.usual:.1f} %"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def _clock(microseconds: int) -> str:
    return f"{datetime.fromtimestamp(microseconds // 1_000_000, UTC):%Y-%m-%d %H:%M:%S}"


def _printable(name: str) -> str:
    """One line of it, and nothing that a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)
