"""A JSON file, read with the suspicion that it is not what it should be."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


class ReportError(Exception):
    """Raised when a file cannot be reported on; names the file, and what in it is wrong."""


def read(path: Path) -> Value:
    """The whole file. Raises ReportError when it cannot be read, or is not JSON."""
    try:
        return Value(path, "", json.loads(path.read_bytes()))
    except OSError as error:
        raise ReportError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise ReportError(f"{path}: is not JSON ({error})") from error


@dataclass(frozen=True)
class Value:
    """A value that knows where in which file it stands.

    Whatever asks it for something that it is not gets a ReportError which says so.
    """

    file: Path
    where: str
    content: object

    def __contains__(self, key: str) -> bool:
        return key in self._object()

    def __getitem__(self, key: str) -> Value:
        members = self._object()
        where = f"{self.where}.{key}".lstrip(".")
        if key not in members:
            raise ReportError(f"{self.file}: {where} is missing")
        return Value(self.file, where, members[key])

    def members(self) -> Iterator[tuple[str, Value]]:
        """The keys of an object, with their values."""
        return ((key, self[key]) for key in self._object())

    def items(self) -> list[Value]:
        """What a list holds."""
        if not isinstance(self.content, list):
            raise self.wrong("a list")
        return [Value(self.file, f"{self.where}[{at}]", item) for at, item in enumerate(self.content)]

    def text(self) -> str:
        """A text that is not empty."""
        if not isinstance(self.content, str) or not self.content:
            raise self.wrong("a text")
        return self.content

    def note(self) -> str:
        """A text that may be empty or null."""
        return self.text() if self.content not in ("", None) else ""

    def number(self) -> float:
        """A number; not a boolean, not an infinite one."""
        if isinstance(self.content, bool) or not isinstance(self.content, int | float):
            raise self.wrong("a number")
        if not math.isfinite(self.content):
            raise self.wrong("a finite number")
        return float(self.content)

    def numbers(self) -> tuple[float, ...]:
        """A list of numbers, maybe none."""
        return tuple(item.number() for item in self.items())

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.content, bool):
            raise self.wrong("true or false")
        return self.content

    def wrong(self, expected: str) -> ReportError:
        """The error to raise where something else was expected."""
        found = "empty" if self.content in ("", []) else KINDS[type(self.content)]
        return ReportError(f"{self.file}: {self.where or 'the whole'} should be {expected}, but is {found}")

    def _object(self) -> Mapping[str, object]:
        if not isinstance(self.content, dict):
            raise self.wrong("an object")
        return self.content
