"""Arguments and argument types that several commands use."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import inf

from purgatory.pipeline.dataset import Dataset


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """Add the positional argument DATASET, parsed as `options.dataset`."""
    parser.add_argument(
        "dataset",
        type=Dataset,
        metavar="DATASET",
        help="the directory that compact fills: any path that Spark can read and write",
    )


def whole_number(least: int, most: float = inf) -> Callable[[str], int]:
    """An argument type: a whole number within these bounds."""

    def parse(text: str) -> int:
        value = int(text.replace("_", ""))
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(_must_be(least, most, text))
        return value

    parse.__name__ = "whole number"
    return parse


def number(least: float, most: float = inf) -> Callable[[str], float]:
    """An argument type: a finite number within these bounds."""

    def parse(text: str) -> float:
        value = float(text)
        # False for NaN.
        if not (least <= value <= most and value < inf):
            raise argparse.ArgumentTypeError(_must_be(least, most, text))
        return value

    parse.__name__ = "number"
    return parse


def _must_be(least: float, most: float, text: str) -> str:
    return f"must be at least {least:g}{'' if most == inf else f' and at most {most:g}'}, not {text}"
