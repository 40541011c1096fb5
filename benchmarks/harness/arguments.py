"""Types of command-line arguments, which say why a value is refused."""

from __future__ import annotations

import argparse
import importlib.util
import math
import re
from pathlib import Path


def whole(text: str, least: int = 1) -> int:
    """A whole number, not below the least."""
    digits = text.replace("_", "")
    if not digits.isdecimal() or int(digits) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number from {least} on, not {text!r}")
    return int(digits)


def sizes(text: str) -> tuple[int, ...]:
    """Numbers separated by commas. With fewer than ten there is nothing that could grow."""
    return tuple(whole(size, 10) for size in text.split(","))


def seconds(text: str) -> float:
    """A time from a tenth of a second to ten minutes."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.1 <= value <= 600:
        raise argparse.ArgumentTypeError(f"must be a number of seconds from 0.1 to 600, not {text!r}")
    return value


def memory(text: str) -> str:
    """A size as Java writes it."""
    if not re.fullmatch(r"[1-9][0-9]*[mg]", text):
        raise argparse.ArgumentTypeError(f"must be like 512m or 4g, not {text!r}")
    return text


def installed_loop(loop: str) -> str:
    """An event loop that is installed."""
    if loop == "uvloop" and importlib.util.find_spec("uvloop") is None:
        raise argparse.ArgumentTypeError("uvloop is not installed: pip install '.[uvloop]'")
    return loop


def existing_directory(text: str) -> str:
    """A directory that exists."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no directory {text}")
    return text


def new_file(text: str) -> Path:
    """A file that can be written: a bad path is refused before an hour of measuring."""
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a directory")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no directory {path.parent} to write {path.name} to")
    return path
