"""The arguments of `run`, which does all steps from a journal to its page."""

from __future__ import annotations

import argparse
from typing import Final

from purgatory.pipeline.arguments import add_dataset, add_journal, output

NAME: Final = "run"
SUMMARY: Final = "Do all steps: compact, summarize, advise, replay and report, with one start of Spark."
EXAMPLES: Final = """\
  %(prog)s build/journal build/dataset build/page
      then open build/page/index.html
  %(prog)s '/journals/*' build/dataset build/page
      reads the journals of many nodes; run it again while they grow
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_journal(parser)
    add_dataset(parser)
    parser.add_argument(
        "page", type=output, metavar="PAGE", help="the folder for the page: index.html and its tables"
    )
