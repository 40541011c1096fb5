"""A backlog: the size of work that is not done yet, and its trend."""

from typing import Final

_HISTORY_POINTS: Final = 128


class Backlog:
    """Samples of a backlog in bounded memory: its peak, its trend and its history over the whole run."""

    def __init__(self) -> None:
        self.latest = 0.0
        self.peak = 0.0
        self._elapsed = 0.0
        self._history: list[float] = []
        self._samples_per_point = 1
        self._samples_in_last_point = 1
        # The sums for a least-squares line.
        self._n = 0
        self._sum_t = self._sum_y = self._sum_tt = self._sum_ty = 0.0

    @property
    def history(self) -> list[float]:
        """The whole run in at most 128 points. Each is the peak of its interval."""
        return list(self._history)

    @property
    def growth_per_second(self) -> float:
        """The slope of the least-squares line through all samples."""
        spread = self._n * self._sum_tt - self._sum_t**2
        return (self._n * self._sum_ty - self._sum_t * self._sum_y) / spread if spread > 0 else 0.0

    def is_growing(self, rate: float) -> bool:
        """Return whether the backlog grows under work that comes in at ``rate`` a second.

        It grows when more than 1 % of the work adds to it, and has added more than the work of a tenth of a
        second. Less is the noise of a short run.
        """
        growth = self.growth_per_second
        return growth > 0.01 * rate and growth * self._elapsed > 0.1 * rate

    def sample(self, elapsed: float, amount: float) -> None:
        self.latest = amount
        self.peak = max(self.peak, amount)
        self._elapsed = elapsed
        self._n += 1
        self._sum_t += elapsed
        self._sum_y += amount
        self._sum_tt += elapsed * elapsed
        self._sum_ty += elapsed * amount
        self._remember(amount)

    def _remember(self, amount: float) -> None:
        if self._history and self._samples_in_last_point < self._samples_per_point:
            self._history[-1] = max(self._history[-1], amount)
            self._samples_in_last_point += 1
            return
        if len(self._history) == _HISTORY_POINTS:
            # The history is full, so halve its resolution.
            pairs = zip(self._history[::2], self._history[1::2], strict=True)
            self._history = [max(pair) for pair in pairs]
            self._samples_per_point *= 2
        self._history.append(amount)
        self._samples_in_last_point = 1
