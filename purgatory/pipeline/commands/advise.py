"""The arguments of `advise`, which gives verdicts on timeouts."""

from __future__ import annotations

import argparse
from typing import Final

from purgatory.pipeline.arguments import add_dataset, whole_number

NAME: Final = "advise"
SUMMARY: Final = "Say which timeouts to keep, shorten or lengthen, and what other timeouts would do."
EXAMPLES: Final = """\
  %(prog)s build/dataset
      gives a verdict on each kind, and on the ten hottest keys of each purgatory
  %(prog)s build/dataset --hot-keys 50
      gives verdicts on fifty keys of each purgatory
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument(
        "--hot-keys",
        type=whole_number(0),
        default=10,
        metavar="N",
        help="the number of keys in each purgatory that get their own verdicts: the keys with the most "
        "operations (default: %(default)s)",
    )
