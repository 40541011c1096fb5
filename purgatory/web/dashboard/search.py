"""A search for operations, by key, by name and by state."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from purgatory import Purgatory
from purgatory._core.operation import NO_KEY
from purgatory.observer import OUTCOMES
from purgatory.web.dashboard.ended_sample import EndedOperation
from purgatory.web.dashboard.label import label
from purgatory.web.dashboard.pending_sample import (
    KEY_LIMIT,
    SHOWN,
    PendingOperation,
    describe,
    oldest_of,
    sampled_keys,
)
from purgatory.web.dashboard.recorder import Recorder

LONGEST: Final = 200
"""The most characters that a viewer may search for."""

READ: Final = 4_000
"""The most operations that a search reads, besides `SHOWN` of each key."""

STATES: Final = ("pending", *OUTCOMES)


@dataclass(frozen=True, slots=True)
class Found:
    """The operations that a search has found: the oldest that are pending, or the latest that have ended.

    `count` is how many were found. When `sampled`, there may be more.
    """

    state: str
    operations: list[PendingOperation] | list[EndedOperation]
    count: int
    sampled: bool


@dataclass(frozen=True, slots=True)
class Search:
    """What a viewer searches for: a part of a key, a part of the name of the class, and the state.

    Raises ValueError for a text that is too long, and for a state that does not exist.
    """

    key: str = ""
    name: str = ""
    state: str = "pending"

    def __post_init__(self) -> None:
        if max(len(self.key), len(self.name)) > LONGEST:
            raise ValueError(f"search for {LONGEST} characters or less")
        if self.state not in STATES:
            raise ValueError(f"the state must be one of {', '.join(STATES)}")

    @staticmethod
    def of(parameters: Mapping[str, str]) -> Search | None:
        """The search that a query's `parameters` ask for, or None when they ask for everything."""
        given = {name: parameters[name] for name in ("key", "name", "state") if name in parameters}
        search = Search(**given)
        return None if search == Search() else search

    def run(self, purgatory: Purgatory, recorder: Recorder, now: float) -> Found:
        """What is found in `purgatory`, which `recorder` observes, at the loop's time `now`."""
        if self.state == "pending":
            return self._run_among_pending(purgatory, recorder, now)
        ended = [
            operation
            for operation in recorder.ended.latest(self.state)
            if _is_in(self.name, operation.kind)
            and (not self.key or any(_is_in(self.key, key) for key in operation.keys))
        ]
        return Found(self.state, ended[:SHOWN], len(ended), sampled=True)

    def _run_among_pending(self, purgatory: Purgatory, recorder: Recorder, now: float) -> Found:
        keys, sampled = self._keys(purgatory, sampled_keys(purgatory, recorder.busy_keys(now)))
        limit = SHOWN + READ // max(1, len(keys))
        operations, count = oldest_of(
            operation
            for key in keys
            for operation in purgatory.watching(key, limit)
            if _is_in(self.name, type(operation).__name__)
        )
        return Found(
            self.state,
            [describe(operation, now) for operation in operations],
            count,
            sampled or any(purgatory.count_watching(key, limit + 1) > limit for key in keys),
        )

    def _keys(self, purgatory: Purgatory, sample: list[Hashable]) -> tuple[list[Hashable], bool]:
        """The keys to search, and whether there may be more. `sample` is a sample of the watched keys.

        A key that is written in full is found however many keys there are. No other key is searched then.
        """
        sampled = purgatory.statistics().keys > KEY_LIMIT
        if not self.key:
            without_key = [NO_KEY] if purgatory.watching(NO_KEY, 1) else []
            return [*without_key, *sample], sampled
        written = [key for key in _written_as(self.key) if purgatory.watching(key, 1)]
        labels = {key: label(key) for key in sample}
        whole = list(dict.fromkeys([*written, *(key for key, text in labels.items() if text == self.key)]))
        if whole:
            return whole, False
        return [key for key, text in labels.items() if _is_in(self.key, text)], sampled


def _is_in(part: str, text: str) -> bool:
    return part.casefold() in text.casefold()


def _written_as(text: str) -> Iterable[Hashable]:
    """The keys that a viewer may mean by `text`: the text itself, and the object of which it is the repr."""
    yield text
    # A text of at most `LONGEST` characters is evaluated in an instant, and to constants only.
    with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        key = literal_eval(text)
        hash(key)
        yield key
