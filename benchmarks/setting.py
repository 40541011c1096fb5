"""What is the same for all questions of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Self

from benchmarks.question import Build, Contender, Sample


@dataclass(frozen=True)
class Setting:
    """The event loop, the builds of the core at hand, the usual one first, and how much is asked."""

    loop: str = "asyncio"
    builds: tuple[Build, ...] = ("compiled", "interpreted")
    # Whether everything is asked, which takes several times as long.
    full: bool = False
    # Measured in place of a question's own sizes.
    sizes: tuple[int, ...] = ()
    # How often what is over in no time is done within one measurement.
    times: int = 100_000
    # For how long timeouts fall due, and idle timers are watched.
    seconds: float = 1.0

    def to_json(self) -> str:
        """As `from_json` reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The setting of which `text` says what is not as usual. Raises TypeError for what no setting has."""
        given: dict[str, Any] = json.loads(text)
        for name in ("builds", "sizes"):
            if name in given:
                given[name] = tuple(given[name])
        return cls(**given)

    def contenders(
        self, section: str, name: str, measure: Callable[[], Sample], *, interpreted: bool = False
    ) -> Iterator[Contender]:
        """One contender, or none, or two: what is called purgatory is measured with a build of the core.

        That is the usual one and, where `interpreted` says that it tells something, the interpreted as well.
        """
        if not name.startswith("purgatory"):
            yield Contender(section, name, measure)
            return
        for build in self.builds if interpreted else self.builds[:1]:
            yield Contender(
                section, f"{name}, interpreted" if build == "interpreted" else name, measure, build
            )
