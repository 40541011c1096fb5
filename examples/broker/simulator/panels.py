"""The layout of a simulation's status and report."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from examples.broker.replication.requests import ALL_ACKS
from examples.broker.simulator.report import Report, Status
from examples.broker.simulator.workload import Workload

FRAME_COLUMNS: Final = 4
_SPARKS: Final = "▁▂▃▄▅▆▇█"


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
        Group(progress, _rates(workload, status, previous)),
        _purgatories(status),
        _backlogs(workload, status, width),
    ]


def summary_panel(report: Report, width: int) -> RenderableType:
    """Return the report of a run, with the figures of the time under load."""
    status = report.under_load
    parts: list[RenderableType] = [
        _rates(report.workload, status, None),
        _purgatories(status),
        _backlogs(report.workload, status, width - FRAME_COLUMNS),
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


def _rates(workload: Workload, status: Status, previous: Status | None) -> Table:
    acknowledged, consumed, seconds = status.acknowledged, status.consumed, status.elapsed
    if previous is not None:
        acknowledged -= previous.acknowledged
        consumed -= previous.consumed
        seconds -= previous.elapsed
    table = _table()
    table.add_row("offered", f"{workload.rate:,.0f}/s")
    table.add_row("acknowledged", f"[bold]{_rate(acknowledged, seconds)}[/]")
    table.add_row("consumed", f"[bold]{_rate(consumed, seconds)}[/]")
    table.add_row("bytes", _rate(acknowledged * workload.record_size / 1e6, seconds, " MB"))
    return table


def _purgatories(status: Status) -> Table:
    table = _table("produce", "fetch", "end to end")
    purgatories = (status.produce, status.fetch)
    waits = (status.produce.waits, status.fetch.waits, status.end_to_end)
    table.add_row("pending", *(f"{purgatory.pending:,}" for purgatory in purgatories))
    table.add_row("completed", *(f"{purgatory.completed:,}" for purgatory in purgatories))
    table.add_row("expired", *(f"{purgatory.expired:,}" for purgatory in purgatories))
    table.add_row("wait p50", *(_ms(wait.p50) for wait in waits))
    table.add_row("wait p99", *(_ms(wait.p99) for wait in waits))
    table.add_row("wait max", *(_ms(wait.max) for wait in waits))
    return table


def _table(*headings: str) -> Table:
    """Return a table without rules, so that it is as low as it can be: a terminal has 24 lines.

    On a narrow terminal, a number goes on in the next line. It is never shortened.
    """
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", show_header=bool(headings))
    table.add_column(style="dim", no_wrap=True)
    for heading in headings or ("",):
        table.add_column(heading, justify="right", overflow="fold")
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
        trend = f"growing by {backlog.growth_per_second:,.0f} a second" if backlog.growing else "not growing"
        table.add_row(
            f"[bold]{name:7}[/]",
            f"{backlog.latest:,.0f} records {meaning}, peak {backlog.peak:,.0f}, [{style}]{trend}[/]",
        )
        bars = sparkline(backlog.history, min(128, width - 8), in_flight)
        table.add_row("", Text(bars, style=style))
    return table


def _conclusions(report: Report) -> Text:
    text = Text()
    core = "compiled" if report.compiled else "interpreted"
    text.append(f"{report.loop} loop, {core} core, {report.under_load.elapsed:.1f} s under load\n", "dim")
    if report.keeps_up:
        text.append("✓ ", "bold green").append("the broker keeps up: neither the backlog nor the lag grows\n")
    else:
        text.append("✗ ", "bold yellow").append("the broker does not keep up: the backlog or the lag grows\n")
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


def _ms(seconds: float) -> str:
    milliseconds = seconds * 1000
    decimals = 0 if milliseconds >= 99.95 else 1 if milliseconds >= 9.995 else 2
    return f"{milliseconds:,.{decimals}f} ms"


def _rate(amount: float, seconds: float, unit: str = "") -> str:
    per_second = amount / seconds if seconds > 0 else 0.0
    return f"{per_second:,.1f}{unit}/s" if unit else f"{per_second:,.0f}/s"
