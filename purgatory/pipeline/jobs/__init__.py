"""The work of each command. Each job reads tables, calls transforms, and writes tables."""

from collections.abc import Mapping
from typing import Final

from purgatory.pipeline.job import Job
from purgatory.pipeline.jobs import (
    advise,
    compact,
    generate,
    optimize,
    prune,
    replay,
    report,
    run,
    summarize,
    watch,
)

# By the name of the command.
JOBS: Final[Mapping[str, Job]] = {
    "generate": generate,
    "run": run,
    "compact": compact,
    "summarize": summarize,
    "advise": advise,
    "replay": replay,
    "report": report,
    "watch": watch,
    "prune": prune,
    "optimize": optimize,
}
