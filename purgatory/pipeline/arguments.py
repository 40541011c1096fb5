"""Arguments and argument types that several commands use."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf
from typing import Final

from purgatory.pipeline.addresses import address_of, output_address_of, table_address_of


def given(text: str) -> str:
    """An argument type: a text that is not empty."""
    if not text:
        raise argparse.ArgumentTypeError("must not be empty; is a variable of the shell unset?")
    return text


def _parsed(parse: Callable[[str], str], text: str) -> str:
    try:
        return given(parse(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error} (docs/object-stores.md)") from None


# Argument types: a path or an address in an object store; the address of a folder that is written to; and the
# address of a folder with Delta tables.
address: Final = partial(_parsed, address_of)
output: Final = partial(_parsed, output_address_of)
table_address: Final = partial(_parsed, table_address_of)


def add_journal(parser: argparse.ArgumentParser) -> None:
    """Add the positional argument JOURNAL, parsed as `options.journal`."""
    parser.add_argument(
        "journal",
        type=address,
        metavar="JOURNAL",
        help="the folder of the journal, or a pattern (*, ?, [...]) for several journals",
    )


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """Add the positional argument DATASET, parsed as `options.dataset`."""
    parser.add_argument(
        "dataset",
        type=table_address,
        metavar="DATASET",
        help="the folder that compact fills",
    )


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
