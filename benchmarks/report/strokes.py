"""How lines are drawn, so that they can be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.report import picture

# Okabe and Ito's colours, which any kind of colour vision tells apart; without the yellow, lost on white, and
# the blue, which is purgatory's.
COLORS = ("#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
# For when the colours are used up, or are not seen.
MARKERS = "sD^vPX*"
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 2, 1.5, 2)))
# The first colours are theirs wherever they are drawn, because they are in many pictures.
FAMILIAR = ("Kafka 0.8", "Kafka's present design", "Kafka 0.9")


@dataclass(frozen=True)
class Stroke:
    """What a line looks like."""

    color: str
    dash: Any
    marker: str
    # What has a higher one lies above.
    layer: int


def strokes(names: Sequence[str]) -> dict[str, Stroke]:
    """One for each name, no two alike: purgatory's own in its colour, the others in turns."""
    own = [name for name in names if picture.is_purgatory(name)]
    others = [name for name in names if not picture.is_purgatory(name)]
    assigned = {
        name: Stroke(picture.PURGATORY, DASHES[turn % len(DASHES)], "o", 3) for turn, name in enumerate(own)
    }
    return assigned | {name: _other(turn) for name, turn in _turns(others).items()}


def _turns(names: Sequence[str]) -> dict[str, int]:
    """The familiar ones in their own turns, the rest in those that are left."""
    familiar = {
        turn: name
        for turn, start in enumerate(FAMILIAR)
        for name in reversed(names)
        if name.startswith(start)
    }
    rest = iter([name for name in names if name not in familiar.values()])
    turns: dict[str, int] = {}
    for turn in range(len(names) + len(FAMILIAR)):
        name = familiar.get(turn) or next(rest, None)
        if name is not None:
            turns[name] = turn
    return turns


def _other(turn: int) -> Stroke:
    dash = DASHES[turn // len(COLORS) % len(DASHES)]
    return Stroke(COLORS[turn % len(COLORS)], dash, MARKERS[turn % len(MARKERS)], 2)
