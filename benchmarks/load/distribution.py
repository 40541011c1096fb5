"""How long requests take to complete."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

# What a third quartile lies above the median in a normal distribution, in standard deviations.
QUARTILE = 0.6744897501960817


@dataclass(frozen=True)
class Distribution:
    """Times to completion, log-normal with this median and third quartile; what takes longer expires."""

    p50_ms: float
    p75_ms: float
    timeout_ms: float = 200.0
    # How many keys a request watches.
    keys: int = 3

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"p50/p75 {self.p50_ms:g}/{self.p75_ms:g} ms"

    @property
    def timeout(self) -> float:
        """In seconds."""
        return self.timeout_ms / 1e3

    def draw(self, random: Random) -> float:
        """A time to completion in seconds."""
        sigma = math.log(self.p75_ms / self.p50_ms) / QUARTILE
        return random.lognormvariate(math.log(self.p50_ms), sigma) / 1e3


# Those of the design note. 8 % of the requests expire in the first, half of them in the second.
DISTRIBUTIONS = (Distribution(20.0, 60.0), Distribution(200.0, 400.0))


@dataclass(frozen=True)
class Load:
    """Requests at a rate per second, for some seconds."""

    distribution: Distribution
    rate: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.distribution.name}, {self.rate:,} requests/s"
