"""Command-line options that are numbers within bounds.

The first parameter, `add`, is the `add_argument` method of a parser or of one of its groups. A value that is
no number, or is out of bounds, ends the program with a message that names the bounds.
"""

import argparse
import math
from collections.abc import Callable

Add = Callable[..., argparse.Action]


def whole(add: Add, name: str, default: int, meaning: str, *, least: int = 1) -> None:
    """Add the option `name`, a whole number of at least `least`, with `meaning` as its help text."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"must be a whole number, {least} or more, not {text!r}")
        return value

    add(name, type=parse, default=default, metavar="N", help=f"{meaning} (default: {default})")


def number(
    add: Add,
    name: str,
    default: float,
    meaning: str,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
) -> None:
    """Add the option `name`, a finite number that is at least `least` and greater than `above`."""
    bound = f"above {above:g}" if above > least else f"{least:g} or more"

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value >= least and value > above):
            raise argparse.ArgumentTypeError(f"must be a number {bound}, not {text!r}")
        return value

    add(name, type=parse, default=default, metavar="X", help=f"{meaning} (default: {default:g})")
