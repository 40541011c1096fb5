"""The command `watch`: summarizes a journal while it is being written."""

from __future__ import annotations

import argparse
import re
from contextlib import closing
from typing import Final

from pyspark.sql import SparkSession

from purgatory.pipeline.arguments import add_journal
from purgatory.pipeline.listing import segments
from purgatory.pipeline.schemas import GAPS_TABLE, OPERATIONS_TABLE
from purgatory.pipeline.watch.monitor import HEADER, Monitor
from purgatory.pipeline.watch.notice import INCOMPLETE, LATE, REFUSED, WARNING, Notice
from purgatory.pipeline.watch.stream import watched

NAME: Final = "watch"
SUMMARY: Final = "Follow a journal: print each window, and warn when unusually many or few operations expire."
EXAMPLES: Final = """\
  %(prog)s build/journal
      follows the journal until Ctrl-C
  %(prog)s '/journals/*' --window 1min --lateness 65s --since 1d
      follows many nodes, whose writers have max_seconds=60, and begins with the last day
  %(prog)s build/journal --once --since 365d
      for CI: the exit status is 3 after a warning, and 4 if rows are missing
  %(prog)s build/journal --until-warning --json
      for alerts: prints objects for programs until the first warning; the exit status is 3
"""

# The exit status after a warning, and the exit status if there was no warning but the figures lack
# operations.
WARNED: Final = 3
LACKING: Final = 4

_UNITS: Final = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|min|h|d)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_journal(parser)
    for name, default, what in (
        ("window", "10s", "the length of a window"),
        ("every", "5s", "the time between two readings of new segments"),
        (
            "lateness",
            "15s",
            "how much later than other operations an operation may be read; use some seconds more than "
            "the max_seconds of the writers, which is 10 by default",
        ),
        ("since", "10min", "begin with segments that are at most this old, to have a baseline for warnings"),
    ):
        parser.add_argument(
            f"--{name}",
            type=milliseconds,
            default=milliseconds(default),
            metavar="TIME",
            help=f"{what}; a number and one of {', '.join(_UNITS)} (default: {default})",
        )
    parser.add_argument(
        "--once", action="store_true", help="end when all existing segments have been reported"
    )
    parser.add_argument("--until-warning", action="store_true", help="end after the first warning")
    parser.add_argument("--json", action="store_true", help="print one JSON object in each line")


def milliseconds(text: str) -> int:
    """An argument type: a time such as 10s, in milliseconds. Refuses zero."""
    parts = _DURATION.fullmatch(text)
    value = round(float(parts[1]) * _UNITS[parts[2]]) if parts else 0
    if not value:
        raise argparse.ArgumentTypeError(
            f"must be a number and one of {', '.join(_UNITS)}, as in 10s, not {text!r}"
        )
    return value


def check(options: argparse.Namespace) -> None:
    for table in (OPERATIONS_TABLE, GAPS_TABLE):
        segments(options.journal, table.name)


def run(spark: SparkSession, options: argparse.Namespace) -> int:
    """Print notices until the end. Returns 0, WARNED or LACKING."""
    monitor = Monitor(options.lateness * 1000)
    happened: set[str] = set()

    def show(notice: Notice) -> None:
        happened.add(notice.event)
        print(notice.as_json() if options.json else notice, flush=True)

    if not options.json:
        print(HEADER, flush=True)
    try:
        notices = watched(
            spark,
            options.journal,
            monitor,
            window_ms=options.window,
            lateness_ms=options.lateness,
            every_ms=None if options.once else options.every,
            since_ms=options.since,
        )
        with closing(notices):
            for notice in notices:
                show(notice)
                if options.until_warning and notice.event == WARNING:
                    break
    finally:
        for notice in monitor.open_windows():
            show(notice)
    if WARNING in happened:
        return WARNED
    return LACKING if happened & {INCOMPLETE, REFUSED, LATE} else 0
