"""The arguments of `generate`, which writes a journal of synthetic operations."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Final

from purgatory.pipeline.arguments import number, output, whole_number
from purgatory.pipeline.workload import NUMBERS, Kind, Workload

NAME: Final = "generate"
SUMMARY: Final = "Write a journal of synthetic operations with known distributions."
EXAMPLES: Final = """\
  %(prog)s build/synthetic
      writes a million operations of two kinds
  %(prog)s build/synthetic --operations 100_000_000 --keys 1_000_000 --hot 0.5
      writes a hundred million operations; half of them watch one key
  %(prog)s build/synthetic --kind Fetch:0.2:1.0:0.5 --kind Patient:0.2:1.0:5
      writes two kinds with the same waits and different timeouts
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    default = Workload()
    share = number(0, 1)
    parser.add_argument("journal", type=output, metavar="JOURNAL", help="the folder to create")
    for name, convert, meaning in (
        ("operations", whole_number(0, NUMBERS), "the number of operations"),
        ("seed", whole_number(0), "the same seed makes the same operations on every cluster"),
        ("nodes", whole_number(1), "the number of nodes"),
        ("keys", whole_number(1), "the number of keys"),
        (
            "zipf",
            number(0),
            "the k-th key is used in proportion to k to the power of -N; 0 makes all keys equally likely",
        ),
        ("hot", share, "the share of operations that watch the first key; the others choose by --zipf"),
        (
            "withdrawn",
            share,
            "the share of operations that are cancelled at a random time, if they have not ended before",
        ),
        ("malformed", share, "the share of rows with a defect"),
        ("duration", number(1e-6), "the seconds from the first start of an operation to the last start"),
    ):
        parser.add_argument(
            f"--{name}",
            type=convert,
            default=getattr(default, name),
            metavar="N",
            help=f"{meaning} (default: %(default)s)",
        )
    parser.add_argument(
        "--start",
        type=_instant,
        default=default.start,
        metavar="TIME",
        help="the start of the first operation, in UTC unless it has an offset such as +02:00 "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--kind",
        dest="kinds",
        type=_kind,
        action="append",
        metavar="NAME:MEDIAN:SIGMA:TIMEOUT",
        help="a kind; may be repeated. The time to completion is log-normal with this median, in seconds, "
        "and this sigma; the timeout is in seconds (default: "
        + ", ".join(f"{k.name}:{k.median}:{k.sigma}:{k.timeout}" for k in default.kinds)
        + ")",
    )


def _kind(text: str) -> Kind:
    name, *values = text.split(":")
    try:
        median, sigma, timeout = map(float, values)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be NAME:MEDIAN:SIGMA:TIMEOUT, not {text!r}") from None
    if not (name and 0 < median < 1e6 and 0 <= sigma < 100 and 0 < timeout < 1e6):
        raise argparse.ArgumentTypeError(f"{text!r}: the median and the timeout must be positive seconds")
    return Kind(name, median, sigma, timeout)


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"must be like 2026-01-01T12:00, not {text!r}") from None
