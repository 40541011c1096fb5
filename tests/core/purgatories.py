"""Checks of a purgatory's state that several tests make."""

from __future__ import annotations

import pytest

from purgatory import OperationState, Purgatory, PurgatoryClosed
from tests.operations import Gate


def nothing_is_left(purgatory: Purgatory) -> bool:
    figures = purgatory.statistics()
    return (
        (figures.pending, figures.watched, figures.keys) == (0, 0, 0)
        and purgatory.operations() == []
        and not purgatory.timer.armed
    )


async def refuses(purgatory: Purgatory) -> bool:
    gate = Gate(opened=True)
    with pytest.raises(PurgatoryClosed):
        purgatory.try_complete_else_watch(gate, ["a"])
    return gate.state is OperationState.NEW and gate.ran == []
