"""The commands: each reads, calls transforms, and writes."""

from typing import Final

from purgatory.pipeline.job import Job
from purgatory.pipeline.jobs import advise, compact, generate, replay, report, summarize, watch

# In the order in which somebody new would use them.
JOBS: Final[tuple[Job, ...]] = (generate, compact, summarize, advise, replay, report, watch)
