"""The command line of ``python -m examples.delayed``."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from aiokafka.errors import (  # type: ignore[import-untyped]  # has no types
    InvalidSessionTimeoutError,
    KafkaConnectionError,
    KafkaError,
)
from rich.console import Console

from examples.arguments import number, whole
from examples.delayed.demo.run import Plan
from examples.delayed.demo.run import run as run_demo
from examples.delayed.service import DESIGNS, serve_until_signal
from examples.delayed.settings import LEVELS, Settings, Topics, is_legal
from examples.event_loop import run
from examples.first_error import first_error
from purgatory.errors import PurgatoryError

FAILED: Final = 1
INTERRUPTED: Final = 130

# What to do about an error of the client, which does not say it.
_MENDS: Final = {
    KafkaConnectionError: "start the brokers, or give the right --bootstrap",
    InvalidSessionTimeoutError: "give a --session-timeout that the brokers allow; by default, Kafka's allow "
    "6 to 1800 seconds (group.min.session.timeout.ms and group.max.session.timeout.ms)",
}

_SERVE: Final = """\
Run an instance of the service. Start several: they share the partitions, and take over from each other.

A producer sends a record to the topic "delayed" with the header "deliver-at" (milliseconds since the
epoch) or "delay-ms" (milliseconds), and the header "target" (a topic). The service forwards it to the
target when it is due. Consumers of the target need not know of that. Records whose headers are wrong
go to the topic "delayed-rejected", with the reason in the header "delayed-reason". A record to the
topic "delayed-cancelled" cancels the one whose partition and offset are its key, such as "0-17"."""
_EXAMPLES: Final = """\
examples:
  %(prog)s --design wheel --bootstrap localhost:9092 --directory data/1
  %(prog)s --design wheel --bootstrap localhost:9092 --directory data/2
      two instances; each has a directory of its own
  %(prog)s --design levels --bootstrap localhost:9092 --levels 1,10,60
      levels of 1, 10 and 60 seconds
  echo hello | kcat -b localhost:9092 -P -t delayed -H delay-ms=5000 -H target=greetings
  kcat -b localhost:9092 -C -t greetings -f '%%s %%h\\n'
      send a record with kcat, and read it five seconds later
"""
_DEMO: Final = """\
Run three brokers, three instances of the service and a load, for each design. The delays of the
records are log-uniform. Of the replicas of the wheel, the one that leads is killed in the middle.
One record of ten is cancelled. Check that each other record arrives, none early, and none after
an acknowledged cancel. The exit status is 1 if not."""
_DEMO_EXAMPLES: Final = """\
examples:
  %(prog)s
      all designs, in about a minute
  %(prog)s --design wheel --messages 50_000 --seconds 30
      one design under more load
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    # The client logs at this level what it then does about it.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    status = 0
    try:
        if options.command == "demo":
            return _demo(options)
        settings = _settings(parser, options)
        name, counts = options.instance, options.statistics
        run(partial(serve_until_signal, options.design, settings, name, counts=counts))
    except* (KafkaError, PurgatoryError, OSError, RuntimeError, ValueError) as errors:
        error = first_error(errors)
        mend = _MENDS.get(type(error))
        print(f"{error}; {mend}" if mend else error, file=sys.stderr)
        status = FAILED
    return status


def _demo(options: argparse.Namespace) -> int:
    designs = list(DESIGNS) if options.design is None else [options.design]
    plans = [
        Plan(design, options.messages, options.seconds, options.longest, options.seed) for design in designs
    ]
    try:
        right = run(partial(run_demo, plans, Console()))
    except KeyboardInterrupt:
        print("interrupted: nothing was checked", file=sys.stderr)
        return INTERRUPTED
    return 0 if right else FAILED


def _settings(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Settings:
    if options.design == "wheel" and options.directory is None:
        parser.error("--design wheel keeps its records in files: choose a --directory")
    if not is_legal(options.topic):
        parser.error(f"--topic: Kafka allows no topic of the name {options.topic!r}")
    logging.basicConfig(format=f"%(asctime)s {options.instance}: %(message)s")
    return Settings(
        options.bootstrap,
        options.directory or Path(),
        topics=Topics(options.topic),
        partitions=options.partitions,
        replicas=options.replication_factor,
        session_timeout=options.session_timeout,
        levels=options.levels,
    )


def _levels(text: str) -> tuple[int, ...]:
    """Whole milliseconds, the shortest first."""
    try:
        seconds = [float(part) for part in text.split(",")]
    except ValueError:
        seconds = [0]
    levels = tuple(sorted({round(1000 * each) for each in seconds if 0 < each < 1e9}))
    if len(levels) < len(seconds) or not levels[0]:
        raise argparse.ArgumentTypeError(f"must be different numbers of seconds above 0, not {text!r}")
    return levels


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.delayed",
        description="Delay records of Kafka, in one of three designs.",
        epilog="%(prog)s COMMAND --help has examples of each command. "
        "docs/delay-service.md says which design to take.",
    )
    commands = parser.add_subparsers(required=True, dest="command", metavar="COMMAND")
    serving = commands.add_parser(
        "serve",
        help="run an instance of the service",
        description=_SERVE,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = serving.add_argument
    add(
        "--design",
        choices=list(DESIGNS),
        required=True,
        help="how records wait: they are written again and again (requeue), or are in a topic for each delay "
        "(levels), or in files (wheel)",
    )
    add("--bootstrap", required=True, metavar="HOST:PORT", help="brokers of the cluster, separated by commas")
    add("--directory", type=Path, metavar="DIR", help="where --design wheel keeps its files; it needs one")
    add("--instance", default="1", metavar="NAME", help="name of this instance in messages (default: 1)")
    add("--topic", default="delayed", help='the topic that producers send to (default: "delayed")')
    usual = ",".join(f"{level / 1000:g}" for level in LEVELS)
    levels = f"for --design levels: the delays of the topics, in seconds (default: {usual})"
    add("--levels", type=_levels, default=LEVELS, metavar="X,...", help=levels)
    others = "seconds after which others take over from an instance that does not answer"
    number(add, "--session-timeout", 10, others, least=2)
    whole(add, "--partitions", 3, "partitions of topics that do not exist yet")
    whole(add, "--replication-factor", 3, "replicas of each of these partitions, at most one on each broker")
    add("--statistics", action="store_true", help="print counts twice a second, as JSON")
    demo = commands.add_parser(
        "demo",
        help="run brokers, instances and load, and check what arrives",
        description=_DEMO,
        epilog=_DEMO_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo.add_argument("--design", choices=list(DESIGNS), help="one design only (default: all)")
    whole(demo.add_argument, "--messages", 5_000, "records for each design")
    number(demo.add_argument, "--seconds", 5, "seconds in which they are sent", above=0)
    number(demo.add_argument, "--longest", 8, "the longest delay in seconds", least=0.1)
    whole(demo.add_argument, "--seed", 1, "seed of the delays", least=0)
    return parser
