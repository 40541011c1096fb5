"""A notice of `watch`: a line for people, or an object for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

# What a notice is about. docs/watch.md explains them.
WINDOW: Final = "window"
WARNING: Final = "warning"
RECOVERED: Final = "recovered"
SHIFTED: Final = "shifted"
INCOMPLETE: Final = "incomplete"
REFUSED: Final = "refused"
LATE: Final = "late"


@dataclass(frozen=True, slots=True)
class Notice:
    """What happened (``event``), in words and as named values."""

    event: str
    text: str
    values: Mapping[str, Any]

    def __str__(self) -> str:
        return self.text

    def as_json(self) -> str:
        """One line of JSON: ``event``, and the values."""
        return json.dumps({"event": self.event, **self.values}, ensure_ascii=False, allow_nan=False)


def instant(microseconds: int) -> str:
    """An instant, in microseconds since 1970, in ISO 8601."""
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat().replace("+00:00", "Z")
