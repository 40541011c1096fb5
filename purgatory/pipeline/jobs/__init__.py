"""The commands. Each command reads tables, calls transforms, and writes tables."""

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

# The commands have the order in which a newcomer uses them.
JOBS: Final[tuple[Job, ...]] = (
    generate,
    run,
    compact,
    summarize,
    advise,
    replay,
    report,
    watch,
    prune,
    optimize,
)
