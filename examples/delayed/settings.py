"""How an instance of the service runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from examples.delayed.topics import LEVELS, Topics


@dataclass(frozen=True, slots=True)
class Settings:
    """`bootstrap` names brokers of the cluster.

    `partitions` and `replicas` are for topics that do not exist yet. `session_timeout` is in seconds: that
    long after an instance fails, others take over from it. `levels` are in milliseconds, the shortest first.
    The wheel keeps its files in `directory`, and its owners prove every `lease` seconds that they still are.
    """

    bootstrap: str
    directory: Path
    topics: Topics = field(default_factory=Topics)
    partitions: int = 3
    replicas: int = 3
    session_timeout: float = 10.0
    lease: float = 1.0
    levels: tuple[int, ...] = LEVELS
