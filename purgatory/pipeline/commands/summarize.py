"""The arguments of `summarize`, which measures each minute."""

from __future__ import annotations

import argparse
from typing import Final

from purgatory.pipeline.arguments import add_dataset, whole_number

NAME: Final = "summarize"
SUMMARY: Final = (
    "Measure ended and pending operations and checks of keys in each minute, and find the hottest keys."
)
EXAMPLES: Final = """\
  %(prog)s build/dataset
  %(prog)s build/dataset --hottest 100
      finds the hundred hottest keys of each purgatory instead of twenty
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument(
        "--hottest",
        type=whole_number(1),
        default=20,
        metavar="N",
        help="the number of hottest keys, for each purgatory and each measure (default: %(default)s)",
    )
