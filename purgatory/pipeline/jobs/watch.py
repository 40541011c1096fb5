"""The command `watch`: summarizes a journal while it is being written."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import Final

from purgatory.pipeline.listing import segments
from purgatory.pipeline.schemas import GAPS_TABLE, OPERATIONS_TABLE
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.watch.monitor import HEADER, Monitor
from purgatory.pipeline.watch.notice import INCOMPLETE, LATE, REFUSED, WARNING, Notice
from purgatory.pipeline.watch.stream import watched

# The exit status after a warning, and the exit status if there was no warning but the figures lack
# operations.
WARNED: Final = 3
LACKING: Final = 4


def check(options: argparse.Namespace) -> None:
    for table in (OPERATIONS_TABLE, GAPS_TABLE):
        segments(options.journal, table.name)


def run(spark: Spark, options: argparse.Namespace) -> int:
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
