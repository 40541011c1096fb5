"""The arguments of `compact`, which adds segments of journals to a dataset."""

from __future__ import annotations

import argparse
from typing import Final

from purgatory.pipeline.arguments import add_dataset, add_journal, whole_number

NAME: Final = "compact"
SUMMARY: Final = "Add new segments of a journal to a dataset: each row once, malformed rows in quarantine."
EXAMPLES: Final = """\
  %(prog)s build/journal build/dataset
      adds the new segments; run it again while the journal grows
  %(prog)s '/journals/*' build/dataset
      adds the journals of many nodes
  %(prog)s build/journal build/dataset --retry
      also reads again the segments that it could not read before
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_journal(parser)
    add_dataset(parser)
    parser.add_argument(
        "--files-per-batch",
        type=whole_number(1),
        default=1000,
        metavar="N",
        help="the number of segments in a batch; a batch is added whole or not at all (default: %(default)s)",
    )
    parser.add_argument(
        "--retry",
        action="store_true",
        help="read again all segments that could not be read, also segments that have not changed since",
    )
