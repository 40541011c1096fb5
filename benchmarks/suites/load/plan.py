"""The plan of a run: drawn before the run, which then only has to follow it."""

from __future__ import annotations

import math
import pickle
from array import array
from dataclasses import dataclass
from math import inf
from pathlib import Path
from random import Random
from typing import Self

# The distance of the third quartile from the median in a normal distribution, in standard deviations.
QUARTILE = 0.6744897501960817
# Any seed: all designs get the same requests.
SEED = 1


@dataclass(frozen=True)
class Distribution:
    """Times to completion, log-normal with this median and third quartile. What takes longer expires."""

    p50_ms: float
    p75_ms: float
    timeout_ms: float = 200.0
    # The keys that a request watches.
    keys: int = 3

    @property
    def name(self) -> str:
        """The distribution's name in tables."""
        return f"p50/p75 {self.p50_ms:g}/{self.p75_ms:g} ms"

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


@dataclass(frozen=True)
class Plan:
    """The times when requests arrive, and when those complete that do so before their timeout.

    All times are seconds from the start of the run, ascending; requests are numbered as they arrive. Both
    lists of times end with infinity, which spares the generator a look at their length.
    """

    timeout: float
    keys: int
    # For so long requests arrive.
    seconds: float
    arrivals: array[float]
    completions: array[float]
    # The request of each completion.
    completing: array[int]
    # For each request, whether it has a completion.
    completes: bytearray

    @classmethod
    def draw(cls, load: Load, seed: int = SEED) -> Self:
        """A plan for `load`, always the same for a seed. Raises ValueError when it has no request."""
        random = Random(seed)
        distribution = load.distribution
        timeout = distribution.timeout_ms / 1e3
        arrivals = array("d")
        completions: list[tuple[float, int]] = []
        completes = bytearray()
        now = random.expovariate(load.rate)
        while now < load.seconds:
            latency = distribution.draw(random)
            if latency < timeout:
                completions.append((now + latency, len(arrivals)))
            completes.append(latency < timeout)
            arrivals.append(now)
            now += random.expovariate(load.rate)
        if not arrivals:
            raise ValueError(f"no request arrives: {load} for {load.seconds:g} s")
        completions.sort()
        ends = array("d", [*(when for when, _ in completions), inf])
        completing = array("q", [request for _, request in completions])
        arrivals.append(inf)
        return cls(timeout, distribution.keys, load.seconds, arrivals, ends, completing, completes)

    def __len__(self) -> int:
        return len(self.completes)

    def tail(self, sent: int) -> float:
        """The time from the arrival of the last of `sent` requests to the planned end of all of them."""
        last = self.arrivals[sent - 1]
        expiring = self.completes.rfind(0, 0, sent)
        end = self.arrivals[expiring] + self.timeout if expiring >= 0 else last
        for at in reversed(range(len(self.completing))):
            if self.completing[at] < sent:
                end = max(end, self.completions[at])
                break
        return end - last

    @classmethod
    def file(cls, load: Load, directory: Path) -> Path:
        """The file with the plan for `load`, which is made if it is not there. One plan is kept at a time.

        A plan is large, and drawing it takes about as long as following it.
        """
        distribution = load.distribution
        name = f"{distribution.p50_ms:g}-{distribution.p75_ms:g}-{load.rate}-{load.seconds:g}"
        file = directory / name
        if not file.exists():
            for earlier in directory.iterdir():
                earlier.unlink()
            file.write_bytes(pickle.dumps(cls.draw(load), protocol=5))
        return file

    @classmethod
    def read(cls, file: Path) -> Self:
        """The plan in a file, which must be one of our own, because it is a pickle."""
        plan = pickle.loads(file.read_bytes())
        if not isinstance(plan, cls):
            raise TypeError(f"{file} holds no plan but {plan!r}")
        return plan
