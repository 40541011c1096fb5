"""Arguments and argument types that several commands use."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Final

# Matches s3://, hdfs:// and others. One letter before the colon is a drive of Windows, and does not match.
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def add_journal(parser: argparse.ArgumentParser) -> None:
    """Add the positional argument JOURNAL, parsed as `options.journal`."""
    parser.add_argument(
        "journal",
        type=path,
        metavar="JOURNAL",
        help="the directory of the journal, or a pattern (*, ?, [...]) for several journals",
    )


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """Add the positional argument DATASET, parsed as `options.dataset`."""
    parser.add_argument(
        "dataset",
        type=path,
        metavar="DATASET",
        help="the directory that compact fills",
    )


def given(text: str) -> str:
    """An argument type: a text that is not empty."""
    if not text:
        raise argparse.ArgumentTypeError("must not be empty; is a variable of the shell unset?")
    return text


def path(text: str) -> str:
    """An argument type: the path of a directory that is, or will be, in a file system of this machine."""
    local = given(text.removeprefix("file://"))
    if _ADDRESS.match(local):
        raise argparse.ArgumentTypeError(
            f"must be a path in a file system, not {text!r}; mount the object store, or copy what you need "
            "(docs/object-stores.md)"
        )
    return local


def whole_number(least: int, most: float = inf) -> Callable[[str], int]:
    """An argument type: a whole number within these bounds."""

    def parse(text: str) -> int:
        with suppress(ValueError):
            value = int(text)
            if least <= value <= most:
                return value
        raise argparse.ArgumentTypeError(_must_be("whole number", least, most, text))

    return parse


def number(least: float, most: float = inf) -> Callable[[str], float]:
    """An argument type: a finite number within these bounds."""

    def parse(text: str) -> float:
        with suppress(ValueError):
            value = float(text)
            # This is False for NaN.
            if least <= value <= most and value < inf:
                return value
        raise argparse.ArgumentTypeError(_must_be("number", least, most, text))

    return parse


def _must_be(what: str, least: float, most: float, text: str) -> str:
    bounds = f"{least:,} or more" if most == inf else f"from {least:,} to {most:,}"
    return f"must be a {what}, {bounds}, not {text!r}"
