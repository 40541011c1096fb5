"""Where the log has the messages that are due soon, when a store is opened."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from time import sleep
from typing import Final

from purgatory.delayed.frame import PAUSE, STRETCH, Frame
from purgatory.delayed.log import home_of

# Milliseconds of due times whose ends are looked up together.
_SPAN: Final = 1_000


class _Span:
    """What the log has of a second of due times: 24 bytes for each message, and 8 for each end."""

    __slots__ = ("dues", "ended", "positions", "tokens")

    def __init__(self) -> None:
        self.dues = array("q")
        self.positions = array("Q")
        self.tokens = array("Q")
        self.ended = array("Q")


class LogIndex:
    """The messages that stay in the log until they are delivered, and that have not ended.

    `add` and `end` take the frames of the log in their order, and then `settle` is called. `positions` and
    `tokens` have those of each message, by due time in milliseconds since the epoch, and `segments` has the
    number of messages in each segment of the log.
    """

    def __init__(self) -> None:
        self._spans: defaultdict[int, _Span] = defaultdict(_Span)
        self.positions: defaultdict[int, array[int]] = defaultdict(_column)
        self.tokens: defaultdict[int, array[int]] = defaultdict(_column)
        self.segments: Counter[int] = Counter()

    def add(self, frame: Frame, position: int) -> None:
        """Take a message that is due soon."""
        span = self._spans[frame.due // _SPAN]
        span.dues.append(frame.due)
        span.positions.append(position)
        span.tokens.append(frame.token)

    def end(self, frame: Frame) -> None:
        """Take the end of a message, which may be in a slot file."""
        span = self._spans.get(frame.due // _SPAN)
        if span is not None:
            span.ended.append(frame.token)

    def settle(self) -> None:
        """Drop the messages that have ended."""
        spans, self._spans = self._spans, defaultdict(_Span)
        seen = 0
        for span in spans.values():
            ended = set(span.ended)
            for due, position, token in zip(span.dues, span.positions, span.tokens, strict=True):
                if token not in ended:
                    self.positions[due].append(position)
                    self.tokens[due].append(token)
                    self.segments[home_of(position)] += 1
                seen += 1
                if seen % STRETCH == 0:
                    sleep(PAUSE)


def _column() -> array[int]:
    return array("Q")
