"""Operations that are on a wheel for a given time."""

from __future__ import annotations

from typing import Any

from purgatory.pipeline.replay.reaper import Wait
from tests.pipeline.journals import operation


def waited(wheel: tuple[str, str], wait: Wait) -> dict[str, Any]:
    """An operation that waited on the wheel of this node and purgatory."""
    (node, purgatory), (entered, deadline, left) = wheel, wait
    return operation(
        node=node,
        purgatory=purgatory,
        started=entered,
        timeout_us=deadline - entered,
        waited_us=(deadline if left is None else left) - entered,
        lateness_us=0 if left is None else None,
        outcome="expired" if left is None else "cancelled",
    )
