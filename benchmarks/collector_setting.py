"""How the garbage collector is set while something is measured."""

from __future__ import annotations

import enum
import gc
from collections.abc import Iterator
from contextlib import contextmanager

# What the README advises for very many pending operations.
ADVISED_THRESHOLDS = (50_000, 100, 50)


class CollectorSetting(enum.Enum):
    """What is done about the garbage collector."""

    # With gc.freeze() after start-up, that is before anything is parked.
    ADVISED = "collector as advised"
    DEFAULT = "collector on"
    # The control: what is left is not the collector's.
    OFF = "collector off"

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Set within a ``with`` block, which begins with nothing to collect."""
        gc.collect()
        usual = gc.get_threshold()
        frozen = gc.get_freeze_count()
        if self is CollectorSetting.ADVISED:
            gc.freeze()
            gc.set_threshold(*ADVISED_THRESHOLDS)
        elif self is CollectorSetting.OFF:
            gc.disable()
        try:
            yield
        finally:
            gc.enable()
            gc.set_threshold(*usual)
            # What somebody else has frozen stays so.
            if not frozen:
                gc.unfreeze()
