"""Arguments and argument types that several commands use."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path

from purgatory.pipeline import locations
from purgatory.pipeline.addresses import address_of, output_address_of, table_address_of
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import UsageError
from purgatory.pipeline.listing import journals


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
        type=_dataset,
        metavar="DATASET",
        help="the folder that compact fills",
    )


def given(text: str) -> str:
    """An argument type: a text that is not empty."""
    if not text:
        raise argparse.ArgumentTypeError("must not be empty; is a variable of the shell unset?")
    return text


def address(text: str) -> str:
    """An argument type: a path, or an address in an object store."""
    return _parsed(address_of, text)


def output(text: str) -> str:
    """An argument type: the address of a folder that is written to."""
    return _parsed(output_address_of, text)


def check_apart(dataset: Dataset, *, journal: str | None = None, page: str | None = None) -> None:
    """Raise UsageError if one of these directories would be written into another of them."""
    root = locations.real(dataset.root)
    read = [] if journal is None else journals(journal)
    if journal is not None and not locations.is_folder(journal) and dataset.is_compacted:
        # A pattern may match the dataset as well.
        read = [each for each in read if each != root]
    for each in read:
        if _is_in(root, each) or _is_in(each, root):
            raise UsageError(
                f"DATASET {dataset.root} and JOURNAL {each}: one of them is in the other; use another DATASET"
            )
    if page is not None:
        locations.check_bucket(page)
    for each in (root, *read):
        if page is not None and _is_in(locations.real(page), each):
            raise UsageError(f"PAGE {page} is in {each}, which other programs read; use another PAGE")


def _is_in(path: str, directory: str) -> bool:
    return Path(path).is_relative_to(directory)


def _dataset(text: str) -> Dataset:
    return Dataset(_parsed(table_address_of, text))


def _parsed(parse: Callable[[str], str], text: str) -> str:
    try:
        return given(parse(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error} (docs/object-stores.md)") from None


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
