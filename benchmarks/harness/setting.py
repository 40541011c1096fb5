"""The options of a run, the same for all of its benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.harness.benchmark import Benchmark, Build, Case, Sample


@dataclass(frozen=True)
class Setting:
    """The options of a run. `builds` has the build that most cases need first."""

    loop: str = "asyncio"
    builds: Sequence[Build] = ("compiled", "interpreted")
    # All sizes and cases, which takes several times as long.
    full: bool = False
    # In place of a benchmark's own sizes.
    sizes: Sequence[int] = ()
    # The iterations within one measurement of something very short.
    times: int = 100_000
    # How long timeouts fall due, requests arrive or an idle process is watched.
    seconds: float = 1.0
    # For the pipeline: Spark's heap, and the directory of its files.
    memory: str = "4g"
    directory: str | None = None

    def cases(
        self, section: str, name: str, measure: Callable[[], Sample], *, interpreted: bool = False
    ) -> Iterator[Case]:
        """One case; or one for each build, if its name begins with purgatory and `interpreted` is set."""
        if not name.startswith("purgatory"):
            yield Case(section, name, measure)
            return
        for build in self.builds if interpreted else self.builds[:1]:
            suffix = ", interpreted" if build == "interpreted" else ""
            yield Case(section, f"{name}{suffix}", measure, build)

    def cases_of(
        self,
        section: str,
        alternatives: Iterable[Any],
        measure: Callable[[Any], Sample],
        *,
        interpreted: bool = False,
    ) -> tuple[Case, ...]:
        """The cases of a section: `measure` measures one of the alternatives, which have names."""
        return tuple(
            case
            for each in alternatives
            for case in self.cases(section, each.name, partial(measure, each), interpreted=interpreted)
        )


@dataclass(frozen=True)
class Entry:
    """How to make a benchmark, with its sizes in a quick and in a full run. Ratios are at the first size."""

    make: Callable[[Setting, Sequence[int]], Benchmark]
    quick: tuple[int, ...]
    full: tuple[int, ...]

    def benchmark(self, setting: Setting) -> Benchmark:
        """The benchmark in this setting."""
        return self.make(setting, setting.sizes or (self.full if setting.full else self.quick))


def benchmarks_of(suite: str) -> Mapping[str, Entry]:
    """The benchmarks of a suite, by name. Imports the suite; empty where it measures in its own way."""
    module = import_module(f"benchmarks.suites.{suite.replace('-', '_')}")
    found: Mapping[str, Entry] = getattr(module, "BENCHMARKS", {})
    return found
