"""The layout of a simulation's status and report. On a narrow terminal, figures are below each other."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from examples.broker.replication.requests import ALL_ACKS
from examples.broker.simulator.measures import BacklogStatus, WaitSummary
from examples.broker.simulator.report import PartitionStatus, Report, Status
from examples.broker.simulator.workload import Workload

PARTITIONS_SHOWN: Final = 12
FRAME_COLUMNS: Final = 4
_SPARKS: Final = "▁▂▃▄▅▆▇█"
# Fewer columns than these are narrow: a number in a column of its own would be cut.
_NARROW: Final = 72


def framed(workload: Workload, parts: Sequence[RenderableType], style: str = "none") -> Panel:
    acks = "all" if workload.acks == ALL_ACKS else str(workload.acks)
    cluster = f"acks={acks} · {workload.replicas} replicas · {workload.partitions} partitions"
    # The frame would cut a long title.
    whole = Text(f"{cluster} · {workload.batch} x {workload.record_size} B", style="dim")
    return Panel(
        Group(whole, *parts),
        title="[bold]produce / fetch[/]",
        title_align="left",
        box=box.ROUNDED,
        border_style=style,
        padding=(0, 1),
    )


def live_parts(workload: Workload, status: Status, previous: Status, width: int) -> list[RenderableType]:
    """Return the state of a run, in parts for ``framed``. The rates are those since ``previous``."""
    progress = Table.grid(padding=(0, 2), expand=True)
    progress.add_column(ratio=1)
    progress.add_column(justify="right")
    progress.add_row(
        ProgressBar(total=workload.duration, completed=min(status.elapsed, workload.duration)),
        f"{status.elapsed:.1f} / {workload.duration:g} s",
    )
    return [
        Group(progress, _rates(workload, status, previous, width)),
        _purgatories(status, width),
        _backlogs(workload, status, width),
        _partitions(status.partitions, width),
    ]


def summary_panel(report: Report, width: int) -> RenderableType:
    """Return the report of a run, with the figures of the time under load."""
    status = report.under_load
    inside = width - FRAME_COLUMNS
    parts: list[RenderableType] = [
        _rates(report.workload, status, None, inside),
        _purgatories(status, inside),
        _backlogs(report.workload, status, inside),
        "",
        _conclusions(report),
    ]
    return framed(report.workload, parts, "green" if report.failure is None else "red")


def progress_line(status: Status, previous: Status) -> str:
    seconds = status.elapsed - previous.elapsed
    acknowledged, consumed = status.acknowledged - previous.acknowledged, status.consumed - previous.consumed
    return (
        f"{status.elapsed:5.1f} s  "
        f"acknowledged {_rate(acknowledged, seconds)}  consumed {_rate(consumed, seconds)}  "
        f"backlog {status.backlog.latest:,.0f}  lag {status.lag.latest:,.0f}  "
        f"pending produces {status.produce.pending} fetches {status.fetch.pending}  "
        f"produce p50/p99 {_ms(status.produce.waits.p50)}/{_ms(status.produce.waits.p99)}  "
        f"fetch p50/p99 {_ms(status.fetch.waits.p50)}/{_ms(status.fetch.waits.p99)}"
    )


def sparkline(values: Sequence[float], width: int, min_top: float) -> str:
    """Return the values as bars. With more values than ``width``, a bar is the peak of several values.

    The scale ends at the highest value, or at ``min_top`` if all values are lower.
    """
    if len(values) > width:
        bounds = [index * len(values) // width for index in range(width + 1)]
        values = [max(values[start:stop]) for start, stop in pairwise(bounds)]
    top = max([min_top, *values])
    return "".join(_SPARKS[int(value / top * (len(_SPARKS) - 1))] for value in values)


def _rates(workload: Workload, status: Status, previous: Status | None, width: int) -> Table:
    acknowledged, consumed, seconds = status.acknowledged, status.consumed, status.elapsed
    if previous is not None:
        acknowledged -= previous.acknowledged
        consumed -= previous.consumed
        seconds -= previous.elapsed
    figures = {
        "offered": f"{workload.rate:,.0f}/s",
        "acknowledged": f"[bold]{_rate(acknowledged, seconds)}[/]",
        "consumed": f"[bold]{_rate(consumed, seconds)}[/]",
        "bytes": _rate(acknowledged * workload.record_size / 1e6, seconds, " MB"),
    }
    if width < _NARROW:
        return _below_each_other(figures)
    table = Table.grid(padding=(0, 2), expand=True)
    for _ in figures:
        table.add_column(justify="right", ratio=1)
    table.add_row(*figures, style="dim")
    table.add_row(*figures.values())
    return table


def _purgatories(status: Status, width: int) -> Table:
    headings = ("pending", "completed", "expired", "wait p50", "p99", "max")
    rows = {
        name: (
            f"{purgatory.pending:,}",
            f"{purgatory.completed:,}",
            f"{purgatory.expired:,}",
            *_waits(purgatory.waits),
        )
        for name, purgatory in (("produce", status.produce), ("fetch", status.fetch))
    }
    rows["end to end"] = ("", "", "", *_waits(status.end_to_end))
    if width < _NARROW:
        return _below_each_other(
            {
                f"{name} {heading}": figure
                for name, figures in rows.items()
                for heading, figure in zip(headings, figures, strict=True)
                if figure
            }
        )
    table = _table("", *headings)
    for name, figures in rows.items():
        table.add_row(name, *figures)
    return table


def _table(first: str, *headings: str) -> Table:
    """A table without rules, so that it is as low as it can be: a terminal has 24 lines."""
    table = Table(box=None, expand=True, padding=0, header_style="dim")
    table.add_column(first, style="bold")
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def _below_each_other(figures: Mapping[str, str]) -> Table:
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column()
    table.add_column(justify="right", no_wrap=True)
    for name, figure in figures.items():
        table.add_row(name, figure)
    return table


def _backlogs(workload: Workload, status: Status, width: int) -> Table:
    table = Table.grid(padding=(0, 1))
    # Less than the records of a tenth of a second are work in flight, which should not fill the scale.
    in_flight = workload.rate / 10
    for name, meaning, backlog in (
        ("backlog", "not acknowledged", status.backlog),
        ("lag", "not consumed", status.lag),
    ):
        style = "yellow" if backlog.growing else "green"
        trend = f"[{style}]{_trend(backlog)}[/]"
        table.add_row(
            f"[bold]{name:7}[/]",
            f"{backlog.latest:,.0f} records {meaning}, peak {backlog.peak:,.0f}, {trend}",
        )
        bars = sparkline(backlog.history, min(128, width - 8), in_flight)
        table.add_row("", Text(bars, style=style))
    return table


def _partitions(partitions: Sequence[PartitionStatus], width: int) -> RenderableType:
    shown = partitions[:PARTITIONS_SHOWN]
    if width < _NARROW:
        table = _table("partition", "watermark", "lag")
        for partition in shown:
            table.add_row(
                str(partition.topic_partition), f"{partition.high_watermark:,}", f"{_lag(partition):,}"
            )
    else:
        table = _table("partition", "start", "high watermark", "end", "lag", "segments", "in sync")
        for partition in shown:
            table.add_row(
                str(partition.topic_partition),
                f"{partition.log_start_offset:,}",
                f"{partition.high_watermark:,}",
                f"{partition.log_end_offset:,}",
                f"{_lag(partition):,}",
                str(partition.segments),
                " ".join(map(str, partition.in_sync_replicas)),
            )
    if len(partitions) > PARTITIONS_SHOWN:
        table.caption = f"and {len(partitions) - PARTITIONS_SHOWN} more"
    return table


def _lag(partition: PartitionStatus) -> int:
    return partition.log_end_offset - partition.consumer_position


def _conclusions(report: Report) -> Text:
    text = Text()
    core = "compiled" if report.compiled else "interpreted"
    text.append(
        f"{report.loop} loop, {core} core, {report.under_load.elapsed:.1f} s under load\n", style="dim"
    )
    if report.keeps_up:
        text.append("✓ ", style="bold green").append(
            "the broker keeps up: neither the backlog nor the lag grows\n"
        )
    else:
        text.append("✗ ", style="bold yellow").append(
            "the broker does not keep up: the backlog or the lag grows\n"
        )
    for error, count in report.drained.errors.items():
        text.append("! ", style="bold yellow").append(f"{count:,} batches failed with {error}\n")
    if report.failure is None:
        consumed, batches = report.drained.consumed, report.batches_verified
        text.append("✓ ", style="bold green")
        text.append("every acknowledged record was consumed once, in order\n")
        text.append(f"  {consumed:,} records in {batches:,} batches", style="dim")
    else:
        text.append("✗ DELIVERY IS WRONG: ", style="bold red").append(report.failure)
    return text


def _trend(backlog: BacklogStatus) -> str:
    if backlog.growing:
        return f"growing by {backlog.growth_per_second:,.0f} a second"
    return "not growing"


def _waits(waits: WaitSummary) -> tuple[str, str, str]:
    return _ms(waits.p50), _ms(waits.p99), _ms(waits.max)


def _ms(seconds: float) -> str:
    milliseconds = seconds * 1000
    return f"{milliseconds:,.0f} ms" if milliseconds >= 100 else f"{milliseconds:.2f} ms"


def _rate(amount: float, seconds: float, unit: str = "") -> str:
    per_second = amount / seconds if seconds > 0 else 0.0
    return f"{per_second:,.1f}{unit}/s" if unit else f"{per_second:,.0f}/s"
