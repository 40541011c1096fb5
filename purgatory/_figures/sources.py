"""The sources of figures, each with the name of its purgatory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from purgatory._figures.figure import Figure
from purgatory.errors import PurgatoryNotOpen, safe_text

if TYPE_CHECKING:
    from purgatory.purgatory import Purgatory


class Source(Protocol):
    """A purgatory, its event loop, a store of delayed messages or a relay."""

    def statistics(self) -> Any:
        """Return the statistics. Raises PurgatoryNotOpen if the source has never been open."""
        raise NotImplementedError


class Sources:
    """Sources with the same `figures`, each with the name of its purgatory.

    A service that starts again in the same process closes its purgatory, and makes a new one of the same
    name. Then the new source takes the place of the old source. Its counters go on from the old counts,
    because a counter must not decrease.
    """

    def __init__(self, figures: Sequence[Figure]) -> None:
        self.figures = figures
        # By name: the source, its purgatory, and what the earlier sources of that name have counted.
        self._sources: dict[str, tuple[Source, Purgatory, dict[str, float]]] = {}

    def __repr__(self) -> str:
        return repr(list(self._sources))

    def add(self, source: Source, purgatory: Purgatory) -> str:
        """Add `source`, and return its name. Raises ValueError if an open purgatory has the same name."""
        name = safe_text(purgatory.name)
        before: dict[str, float] = {}
        if name in self._sources:
            other, its_purgatory, earlier = self._sources[name]
            # A purgatory that is closing still counts the operations that it ends.
            if not its_purgatory.closing or its_purgatory.statistics().pending:
                raise ValueError(
                    f"a purgatory {name!r} is collected already: give each purgatory a name of its own, or "
                    "close or remove the other one"
                )
            for figure, value in self._values(other, earlier):
                if figure.metric.counter:
                    before[figure.field] = value
        self._sources[name] = source, purgatory, before
        return name

    def remove(self, source: Source) -> str | None:
        """Remove `source`, and return its name. None if it is not here."""
        for name, (each, _, _) in self._sources.items():
            if each is source:
                self.drop(name)
                return name
        return None

    def drop(self, name: str) -> None:
        """Remove the source with this name."""
        del self._sources[name]

    def values(self) -> Iterator[tuple[str, list[tuple[Figure, float]]]]:
        """The present values of each source, with its name. Any thread may call it."""
        for name, (source, _, before) in list(self._sources.items()):
            yield name, self._values(source, before)

    def _values(self, source: Source, before: dict[str, float]) -> list[tuple[Figure, float]]:
        """The values of one source. A figure that is None, such as a missing limit, is left out."""
        with suppress(PurgatoryNotOpen):
            statistics = source.statistics()
            values = [(figure, getattr(statistics, figure.field)) for figure in self.figures]
            known = [(figure, value) for figure, value in values if value is not None]
            return [(figure, value + before.get(figure.field, 0)) for figure, value in known]
        return []
