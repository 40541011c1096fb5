"""The command line of ``python -m examples.broker.simulator``."""

import argparse
import importlib.util
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import anyio
from rich.console import Console

from examples.arguments import number, whole
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import ALL_ACKS, LEADER_ACK, NO_ACKS
from examples.broker.simulator.display import print_lines, show_live
from examples.broker.simulator.panels import summary_panel
from examples.broker.simulator.report import Report
from examples.broker.simulator.simulation import LEADER_ID, Simulation
from examples.broker.simulator.workload import Workload
from examples.event_loop import run
from examples.text_output import print_anywhere
from purgatory.observer import Observer

Show = Callable[[Simulation, Console], Coroutine[None, None, None]]

WRONG_DELIVERY: Final = 1
INTERRUPTED: Final = 130

_ACKS: Final = {"0": NO_ACKS, "1": LEADER_ACK, "all": ALL_ACKS}
_NUMBERS: Final = {
    "batch": "records per batch",
    "record_size": "bytes per record",
    "producers": "number of producers, which share the rate",
    "consumers": "number of consumers, which share the partitions",
    "partitions": "number of partitions",
    "replicas": "replicas of each partition, including the leader's",
    "min_bytes": "bytes that a consumer's fetch waits for",
}
_DESCRIPTION: Final = """\
Run a broker under load in one process, with followers, producers and consumers.
Show how long produces and fetches wait, and check that every acknowledged record
is consumed once, in order."""
_EXAMPLES: Final = """\
examples:
  %(prog)s
      50,000 records/s for ten seconds, acks=all over three replicas
  %(prog)s --rate 5_000_000
      more than one process can handle, so the backlog grows
  %(prog)s --acks 1 --min-bytes 100000 --max-wait 0.05
      large fetches: consumers wait for 100 kB or 50 ms
  %(prog)s --journal build/journal
      record every produce and fetch in Parquet files
  %(prog)s --no-display
      the report alone; the exit status is 1 if a record was lost, repeated or reordered
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the simulation, and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        workload = _workload(options)
    except ValueError as error:
        parser.error(str(error))
    if options.journal is not None:
        if importlib.util.find_spec("pyarrow") is None:
            parser.error("--journal: pyarrow is not installed; pip install '.[journal]'")
        try:
            options.journal.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            parser.error(
                f"--journal {options.journal}: {error.strerror}; choose a directory that can be made"
            )
    print_anywhere(sys.stdout, sys.stderr)
    console = Console()
    live = console.is_terminal and not console.is_dumb_terminal
    show = None if options.no_display else show_live if live else print_lines
    try:
        report = run(lambda: _simulate(workload, show, console, options.journal))
    except KeyboardInterrupt:
        print("interrupted: the delivery was not verified", file=sys.stderr)
        return INTERRUPTED
    console.print(summary_panel(report, console.width))
    if options.journal is not None:
        console.print(f"The journal of this run is in {options.journal}", soft_wrap=True, highlight=False)
    if report.failure is not None:
        print(f"delivery is wrong: {report.failure}", file=sys.stderr)
        return WRONG_DELIVERY
    return 0


async def _simulate(workload: Workload, show: Show | None, console: Console, journal: Path | None) -> Report:
    async with AsyncExitStack() as stack:
        observers: list[Observer] = []
        if journal is not None:
            # Imported here, since only the journal needs pyarrow.
            from purgatory.journal import JournalWriter

            observers.append(await stack.enter_async_context(JournalWriter(journal)))
        broker = await stack.enter_async_context(
            ReplicaManager.running(HostedPartitions(LEADER_ID), observers=observers)
        )
        simulation = Simulation(workload, broker)
        display = await stack.enter_async_context(anyio.create_task_group())
        if show is not None:
            display.start_soon(show, simulation, console)
        report = await simulation.run()
        display.cancel_scope.cancel()
    return report


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.broker.simulator",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = Workload()
    load = parser.add_argument_group("load, cluster and waiting")
    number(
        load.add_argument, "--rate", default.rate, "records per second, of all producers together", above=0
    )
    number(load.add_argument, "--duration", default.duration, "seconds for which producers send", above=0)
    for name, what in _NUMBERS.items():
        whole(load.add_argument, f"--{name.replace('_', '-')}", getattr(default, name), what)
    wait = "longest time in seconds that a consumer's fetch waits for them"
    number(load.add_argument, "--max-wait", default.max_wait, wait, least=0)
    load.add_argument(
        "--acks",
        choices=list(_ACKS),
        default="all",
        help="acknowledgements that a produce waits for: none (0), the leader's (1), or those of all in-sync "
        "replicas (all) (default: all)",
    )
    output = parser.add_argument_group("running and output")
    output.add_argument(
        "--journal", type=Path, metavar="DIR", help="record every operation in DIR, see docs/journal.md"
    )
    output.add_argument("--no-display", action="store_true", help="print no progress while it runs")
    return parser


def _workload(options: argparse.Namespace) -> Workload:
    given = {name: getattr(options, name) for name in ("rate", "duration", "max_wait", *_NUMBERS)}
    return Workload(acks=_ACKS[options.acks], **given)
