"""The load of the test: when requests arrive, and when they complete."""

from __future__ import annotations

import statistics
from array import array
from dataclasses import dataclass
from math import inf, log
from random import Random
from typing import Self


@dataclass(frozen=True)
class Distribution:
    """Times to completion, log-normal with this median and third quartile. What takes longer expires."""

    p50_ms: float
    p75_ms: float
    timeout_ms: float = 200.0
    # The keys that a request watches.
    keys: int = 3

    def __str__(self) -> str:
        return (
            f"half of the requests complete within {self.p50_ms:g} ms, three quarters within "
            f"{self.p75_ms:g} ms; timeout {self.timeout_ms:g} ms; {self.keys} keys each"
        )


# The distributions of the design note. 8 % of the requests expire in the first, half of them in the second.
SHORT, LONG = Distribution(20.0, 60.0), Distribution(200.0, 400.0)


@dataclass(frozen=True)
class Plan:
    """The times when requests arrive, for some seconds, and when those complete that do so in time.

    All times are seconds from the start of the run, ascending; requests are numbered as they arrive. Both
    lists of times end with infinity, which spares the generator a look at their length.
    """

    distribution: Distribution
    rate: int
    seconds: float
    arrivals: array[float]
    completions: array[float]
    # The request of each completion.
    completing: array[int]
    # For each request, whether it has a completion.
    completes: bytearray

    @classmethod
    def draw(cls, distribution: Distribution, rate: int, seconds: float) -> Self:
        """A plan with so many requests per second, always the same."""
        # Any seed: all designs get the same requests.
        random = Random(1)
        timeout = distribution.timeout_ms / 1e3
        mean = log(distribution.p50_ms)
        deviation = log(distribution.p75_ms / distribution.p50_ms) / statistics.NormalDist().inv_cdf(0.75)
        arrivals = array("d")
        completions: list[tuple[float, int]] = []
        completes = bytearray()
        now = random.expovariate(rate)
        while now < seconds:
            latency = random.lognormvariate(mean, deviation) / 1e3
            if latency < timeout:
                completions.append((now + latency, len(arrivals)))
            completes.append(latency < timeout)
            arrivals.append(now)
            now += random.expovariate(rate)
        completions.sort()
        ends = array("d", [*(when for when, _ in completions), inf])
        completing = array("q", [request for _, request in completions])
        arrivals.append(inf)
        return cls(distribution, rate, seconds, arrivals, ends, completing, completes)

    @property
    def timeout(self) -> float:
        return self.distribution.timeout_ms / 1e3

    def __len__(self) -> int:
        return len(self.completes)

    def tail(self, sent: int) -> float:
        """The time from the arrival of the last of `sent` requests to the planned end of all of them."""
        timeout = self.timeout
        ends = [arrival + timeout for arrival in self.arrivals[:sent]]
        for when, request in zip(self.completions, self.completing, strict=False):
            if request < sent:
                ends[request] = when
        return max(ends) - self.arrivals[sent - 1]
