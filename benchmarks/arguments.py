"""Arguments that several commands take, and why one is refused."""

from __future__ import annotations

import argparse
import importlib.util
import math
from collections.abc import Callable, Collection
from pathlib import Path

from benchmarks.loops import LOOPS


def command_line(prog: str, description: str, examples: str) -> argparse.ArgumentParser:
    """A parser whose help has both as they are written."""
    return argparse.ArgumentParser(
        prog=prog,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_questions(parser: argparse.ArgumentParser, names: Collection[str]) -> None:
    """The positional arguments QUESTION, any of these, as `options.questions`; none stands for all."""

    def question(name: str) -> str:
        if name not in names:
            raise argparse.ArgumentTypeError(f"no such question: {name!r} (there are {', '.join(names)})")
        return name

    parser.add_argument(
        "questions", nargs="*", metavar="QUESTION", type=question, help="what to measure (default: all)"
    )


def add_loop(parser: argparse.ArgumentParser) -> None:
    """The option --loop, as `options.loop`."""
    parser.add_argument(
        "--loop", choices=LOOPS, type=_installed, default="asyncio", help="the event loop to measure on"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option --json, as `options.json`. What cannot be written is refused now, not after an hour."""
    parser.add_argument("--json", type=_new_file, metavar="FILE", help="also write all figures to FILE")


def existing_directory(text: str) -> Path:
    """Argument type: a directory that there is."""
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"there is no directory {text}")
    return path


def whole(least: int = 1) -> Callable[[str], int]:
    """Argument type: a whole number, not below the least."""

    def parse(text: str) -> int:
        digits = text.replace("_", "")
        if not digits.isdecimal() or int(digits) < least:
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} on, not {text!r}")
        return int(digits)

    return parse


def seconds_between(least: float, most: float) -> Callable[[str], float]:
    """Argument type: a time in these bounds."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"must be a number of seconds from {least:g} to {most:g}, not {text!r}"
            )
        return value

    return parse


def _installed(loop: str) -> str:
    if loop == "uvloop" and importlib.util.find_spec("uvloop") is None:
        raise argparse.ArgumentTypeError("uvloop is not installed: pip install '.[uvloop]'")
    return loop


def _new_file(text: str) -> Path:
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a directory")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no directory {path.parent} to write {path.name} to")
    return path
