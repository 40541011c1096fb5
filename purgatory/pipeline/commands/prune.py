"""The arguments of `prune`, which deletes compacted segments."""

from __future__ import annotations

import argparse
from typing import Final

from purgatory.pipeline.arguments import add_dataset, add_journal, whole_number

NAME: Final = "prune"
SUMMARY: Final = "Delete the segments of a journal whose rows are in a dataset."
EXAMPLES: Final = """\
  %(prog)s build/journal build/dataset --dry-run
      lists the segments that are compacted and older than a week
  %(prog)s '/journals/*' build/dataset --days 1
      deletes the segments that are compacted and older than a day
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_journal(parser)
    add_dataset(parser)
    parser.add_argument(
        "--days",
        type=whole_number(0),
        default=7,
        metavar="N",
        help="keep segments that were changed in the last N days (default: %(default)s)",
    )
    parser.add_argument("--dry-run", action="store_true", help="list the segments, and delete none")
