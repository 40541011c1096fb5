"""The arguments of `report`, which makes a page."""

from __future__ import annotations

import argparse
from typing import Final

from purgatory.pipeline.arguments import add_dataset, output

NAME: Final = "report"
SUMMARY: Final = "Make an HTML page with charts and tables of what the other commands computed."
EXAMPLES: Final = """\
  %(prog)s build/dataset build/report
      then open build/report/index.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument(
        "output",
        type=output,
        metavar="PAGE",
        help="the folder for index.html and its tables",
    )
