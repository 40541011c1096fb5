"""The arguments of `replay`, which tries other ticks and wheel sizes."""

from __future__ import annotations

import argparse
from typing import Final

from purgatory.pipeline.arguments import add_dataset, number, whole_number

NAME: Final = "replay"
SUMMARY: Final = "Replay recorded operations with other ticks and wheel sizes, and recommend a setting."
EXAMPLES: Final = """\
  %(prog)s build/dataset
      replays the newest 100,000 operations of each purgatory, with 42 settings
  %(prog)s build/dataset --operations 0 --ticks 0.001 0.005 --wheel-sizes 60 512 --late 0.002
      replays all operations, with four settings; expirations may be 2 ms late
"""

TICKS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
# The wheel size of Kafka is 20.
WHEEL_SIZES: Final = (8, 20, 60, 128, 256, 2048)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument(
        "--ticks",
        type=number(1e-6, 3600),
        nargs="+",
        default=TICKS,
        metavar="SECONDS",
        help=f"the ticks to try (default: {' '.join(f'{tick:g}' for tick in TICKS)})",
    )
    parser.add_argument(
        "--wheel-sizes",
        type=whole_number(2, 1 << 20),
        nargs="+",
        default=WHEEL_SIZES,
        metavar="SLOTS",
        help=f"the wheel sizes to try with each tick; the default setting is always tried "
        f"(default: {' '.join(map(str, WHEEL_SIZES))})",
    )
    parser.add_argument(
        "--late",
        type=number(0, 3600),
        default=0.01,
        metavar="SECONDS",
        help="the lateness that is acceptable for 99 %% of the expirations (default: %(default)s)",
    )
    parser.add_argument(
        "--operations",
        type=whole_number(0),
        default=100_000,
        metavar="N",
        help="replay the newest N operations of each node and purgatory, and other operations that start in "
        "the same seconds; 0 replays all operations (default: %(default)s)",
    )
