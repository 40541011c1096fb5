"""The arguments of `optimize`, which merges the small files of a dataset."""

from __future__ import annotations

import argparse
from typing import Final

from purgatory.pipeline.arguments import add_dataset

NAME: Final = "optimize"
SUMMARY: Final = "Merge the small files of a dataset, and delete the files that it has not needed for a week."
EXAMPLES: Final = """\
  %(prog)s build/dataset
      run it once a day, if compact runs every few minutes
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
