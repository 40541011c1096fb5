"""What will happen in a run: drawn before, so that the run itself only has to walk along it."""

from __future__ import annotations

import pickle
from array import array
from dataclasses import dataclass
from math import inf
from pathlib import Path
from random import Random
from typing import Self

from benchmarks.load.distribution import Load


@dataclass(frozen=True)
class Plan:
    """When requests arrive, and when those complete that do so before their timeout.

    All in seconds from the start of the run, ascending; requests are numbered as they arrive. Both lists of
    times end with infinity, which spares whoever walks along them a look at their length.
    """

    timeout: float
    keys: int
    # How long requests arrive.
    seconds: float
    arrivals: array[float]
    completions: array[float]
    # The request that each completion is of.
    completing: array[int]
    # For each request, whether it has a completion.
    completes: bytearray

    @classmethod
    def draw(cls, load: Load, seed: int) -> Self:
        """A plan for `load`, always the same for a seed. Raises ValueError when no request is in it."""
        random = Random(seed)
        distribution = load.distribution
        timeout = distribution.timeout
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
        return cls(
            timeout=timeout,
            keys=distribution.keys,
            seconds=load.seconds,
            arrivals=array("d", [*arrivals, inf]),
            completions=array("d", [*(when for when, _ in completions), inf]),
            completing=array("q", [request for _, request in completions]),
            completes=completes,
        )

    def __len__(self) -> int:
        """How many requests arrive."""
        return len(self.completes)

    def tail(self, sent: int) -> float:
        """How long after the arrival of the last of the first `sent` requests the last of them is to end."""
        last = self.arrivals[sent - 1]
        expiring = self.completes.rfind(0, 0, sent)
        end = self.arrivals[expiring] + self.timeout if expiring >= 0 else last
        for at in reversed(range(len(self.completing))):
            if self.completing[at] < sent:
                end = max(end, self.completions[at])
                break
        return end - last

    def write(self, file: Path) -> None:
        """Keep it for the processes that follow it."""
        file.write_bytes(pickle.dumps(self, protocol=5))

    @classmethod
    def read(cls, file: Path) -> Self:
        """What `write` has kept; `file` must be one of our own, because it is a pickle."""
        plan = pickle.loads(file.read_bytes())
        if not isinstance(plan, cls):
            raise TypeError(f"{file} holds no plan but {plan!r}")
        return plan
