"""What may stand together because it compares the same contenders."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

T = TypeVar("T")

# Where fewer are in common, more of a picture is empty than is saved.
MOST = 0.75


def same_contenders(names: Collection[str], others: Collection[str]) -> bool:
    """Whether most of them are the same."""
    return len(set(names) & set(others)) >= MOST * len(set(names) | set(others))


def groups(items: Iterable[T], alike: Callable[[T, T], bool]) -> list[list[T]]:
    """In the order of their first items, to which the others in the group are alike."""
    found: list[list[T]] = []
    for item in items:
        group = next((group for group in found if alike(item, group[0])), None)
        if group is None:
            found.append([item])
        else:
            group.append(item)
    return found
