"""The display of a simulation while it runs, and its summary."""

import io
from dataclasses import replace

import anyio
import pytest
from rich.console import Console

from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.simulator.display import print_lines, show_live
from examples.broker.simulator.panels import FRAME_COLUMNS, framed, live_parts, sparkline, summary_panel
from examples.broker.simulator.report import Report
from examples.broker.simulator.simulation import LEADER_ID, Simulation
from examples.broker.simulator.workload import Workload
from purgatory.testing import VirtualTimeLoop

SMALL = Workload(rate=2_000, batch=10, record_size=10, duration=2.5)


def console(width: int, *, terminal: bool = True) -> Console:
    return Console(
        file=io.StringIO(), width=width, force_terminal=terminal, color_system=None, legacy_windows=False
    )


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
async def report(virtual_time: VirtualTimeLoop) -> Report:
    async with ReplicaManager.running(HostedPartitions(LEADER_ID)) as broker:
        return await Simulation(SMALL, broker, virtual_time.time).run()


@pytest.mark.parametrize("width", [60, 80, 120])
async def test_the_live_panel_fits_a_terminal_of_24_lines_and_shortens_no_number(
    report: Report, width: int
) -> None:
    output = console(width)
    loaded = replace(report.under_load, produce=replace(report.under_load.produce, completed=12_345_678))
    start = replace(loaded, elapsed=0, acknowledged=0, consumed=0)
    output.print(framed(SMALL, live_parts(SMALL, loaded, start, width - FRAME_COLUMNS)))
    shown = printed(output)
    assert len(shown.splitlines()) <= 24
    assert {len(line) for line in shown.splitlines()} == {width}
    for expected in ("acks=all", "10 x 10 B", "2,000/s", "12,345,678", "wait p99", "fetch"):
        assert expected in shown
    assert "…" not in shown


@pytest.mark.parametrize("width", [40, 60, 80])
async def test_the_summary_fits_the_terminal_and_shortens_no_number(report: Report, width: int) -> None:
    many = replace(report.under_load.produce, completed=345_678)
    output = console(width)
    output.print(summary_panel(replace(report, under_load=replace(report.under_load, produce=many)), width))
    assert {len(line) for line in printed(output).splitlines()} == {width}
    assert "…" not in printed(output)
    for whole in ("completed", "345,678", "2,000/s"):
        assert whole in printed(output)
    assert "2,000/s" in printed(output)


async def test_the_summary_shows_the_conclusions(report: Report) -> None:
    right = console(80)
    right.print(summary_panel(report, 80))
    assert "keeps up: neither the backlog nor the lag grows" in printed(right)
    assert "every acknowledged record was consumed once, in order" in printed(right)
    growing = replace(report.under_load.backlog, growing=True, growth_per_second=1_234)
    output = console(80)
    output.print(
        summary_panel(
            replace(
                report,
                under_load=replace(report.under_load, backlog=growing),
                drained=replace(report.drained, errors={"REQUEST_TIMED_OUT": 5}),
                failure="partition events-0, offset 7: gone",
            ),
            80,
        )
    )
    shown = printed(output)
    assert "growing by 1,234 a second" in shown
    assert "does not keep up" in shown
    assert "5 batches failed with REQUEST_TIMED_OUT" in shown
    assert "DELIVERY IS WRONG: partition events-0, offset 7: gone" in shown


@pytest.mark.parametrize("terminal", [True, False])
async def test_progress_is_live_on_a_terminal_and_plain_lines_elsewhere(
    virtual_time: VirtualTimeLoop, terminal: bool
) -> None:
    output = console(80, terminal=terminal)
    async with ReplicaManager.running(HostedPartitions(LEADER_ID)) as broker:
        simulation = Simulation(SMALL, broker, virtual_time.time)
        async with anyio.create_task_group() as display:
            display.start_soon(show_live if terminal else print_lines, simulation, output)
            await simulation.run()
            display.cancel_scope.cancel()
    shown = printed(output)
    if terminal:
        assert shown.count("produce / fetch") >= 6
    else:
        lines = shown.splitlines()
        assert [line.split()[0] for line in lines] == ["1.0", "2.0", "3.0"][: len(lines)]
        assert len(lines) >= 2
        assert all("produce p50/p99" in line for line in lines)


def test_a_sparkline_shows_peaks_and_keeps_small_values_small() -> None:
    assert sparkline([0, 50, 100], width=10, min_top=0) == "▁▄█"
    assert sparkline([0, 50, 100], width=10, min_top=1_000) == "▁▁▁"
    assert sparkline([0, 9, 0, 0, 1, 9], width=3, min_top=9) == "█▁█"
    assert sparkline([], width=3, min_top=9) == ""
