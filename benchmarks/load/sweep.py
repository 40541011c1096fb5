"""Ever higher rates, until nobody keeps up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.load.contestant import Contestant
from benchmarks.load.measurement import Measurement, Point

# So many rates in a row at which it is saturated are enough: one may be the machine's fault.
ENOUGH = 2


@dataclass(frozen=True)
class Curve:
    """A contestant, with a point for each rate that it was measured at."""

    contestant: Contestant
    points: list[Point] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        """Whether it need not be measured at higher rates."""
        last = self.points[-ENOUGH:]
        return len(last) == ENOUGH and all(point.saturated for point in last)

    @property
    def kept_up_with(self) -> int | None:
        """The highest rate below the first that saturated it; None when that was the lowest."""
        highest = None
        for point in self.points:
            if point.saturated:
                break
            highest = point.rate
        return highest

    def at(self, rate: int) -> Point | None:
        """The point for a rate; None when it was not measured there."""
        return next((point for point in self.points if point.rate == rate), None)


@dataclass(frozen=True)
class Step:
    """What has just been measured, and how much of the sweep is over then at least: 1 is all."""

    contestant: Contestant
    rate: int
    measurement: Measurement
    over: float


class Sweep:
    """The contestants side by side: at each rate in turns, so that a slow spell of the machine hits all.

    The generator alone is measured at each rate, too, but once: it varies little.
    """

    def __init__(
        self,
        contestants: Sequence[Contestant],
        generator: Contestant,
        rates: Sequence[int],
        repetitions: int,
        measure: Callable[[Contestant, int], Measurement],
    ) -> None:
        self.curves = tuple(map(Curve, contestants))
        self.generator = Curve(generator)
        self._rates = rates
        self._repetitions = repetitions
        self._measure = measure

    def steps(self) -> Iterator[Step]:
        """Measure, one step at a time."""
        rounds = len(self._rates) * self._repetitions
        for at, rate in enumerate(self._rates):
            curves = [curve for curve in self.curves if not curve.finished]
            if not curves:
                return
            points = {curve.contestant: Point(rate) for curve in curves}
            for repetition in range(self._repetitions):
                first = repetition % len(curves)
                turn = [curve.contestant for curve in curves[first:] + curves[:first]]
                if repetition == 0:
                    turn.append(self.generator.contestant)
                    points[self.generator.contestant] = Point(rate)
                for number, contestant in enumerate(turn, 1):
                    measurement = self._measure(contestant, rate)
                    points[contestant].measurements.append(measurement)
                    over = at * self._repetitions + repetition + number / len(turn)
                    yield Step(contestant, rate, measurement, over / rounds)
            for curve in (*curves, self.generator):
                curve.points.append(points[curve.contestant])
