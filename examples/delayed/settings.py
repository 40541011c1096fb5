"""How an instance of the service runs, and the topics of the service."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

# 5, 10, 30 s, 1, 2, 5, 10, 20, 30, 45 min, 1 h, 2 h, in milliseconds.
LEVELS: Final = tuple(
    1000 * seconds for seconds in (5, 10, 30, 60, 120, 300, 600, 1200, 1800, 2700, 3600, 7200)
)
_UNITS: Final = (("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
# What Kafka allows for the name of a topic.
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_legal(name: str) -> bool:
    """Whether Kafka allows a topic of this name."""
    return _LEGAL.fullmatch(name) is not None and name not in (".", "..")


def duration(milliseconds: int) -> str:
    """A short name such as ``5s`` or ``45m``, in the largest unit that needs no fraction."""
    unit, length = next((unit, length) for unit, length in _UNITS if milliseconds % length == 0)
    return f"{milliseconds // length}{unit}"


@dataclass(frozen=True, slots=True)
class Topics:
    """The topic that producers send to, and the hidden ones. All their names begin with its name."""

    requests: str = "delayed"

    @property
    def rejected(self) -> str:
        """Records whose headers are missing or wrong, or whose target does not take them."""
        return f"{self.requests}-rejected"

    @property
    def cancelled(self) -> str:
        """The ids of the records that producers have cancelled."""
        return f"{self.requests}-cancelled"

    @property
    def done(self) -> str:
        """The ids of the records that were forwarded. The replicas of the wheel read it."""
        return f"{self.requests}-done"

    def level(self, milliseconds: int) -> str:
        """Records that all wait for the same time."""
        return f"{self.requests}-{duration(milliseconds)}"

    def group(self, purpose: str) -> str:
        """The name of a consumer group."""
        return f"{self.requests}-{purpose}"

    def owns(self, topic: str) -> bool:
        """Whether a topic is one of the service's own."""
        return topic == self.requests or topic.startswith(f"{self.requests}-")


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
