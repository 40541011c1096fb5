"""Keeps the dataset, the journal and the page out of each other."""

from __future__ import annotations

from pathlib import Path

from purgatory.pipeline import locations
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import UsageError
from purgatory.pipeline.listing import journals


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
