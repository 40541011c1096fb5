"""The command line `python -m purgatory.delayed`."""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Final, TextIO

from purgatory.delayed.inspect.inspection import Inspection, dead_letters, inspect
from purgatory.delayed.storage.dead_letters import DeadLetter

FAILED: Final = 1
INTERRUPTED: Final = 130

_DESCRIPTION: Final = """\
List the delayed messages of a directory that are still to come, by the hour in which
they are due. It changes nothing and takes no lock, so a process may have the directory
open meanwhile."""
_EXAMPLES: Final = """\
examples:
  %(prog)s messages
      what is pending in each hour, the log, the dead letters
  %(prog)s messages --dead-letters
      the messages that could not be delivered, one a line, in JSON
  %(prog)s messages --dead-letters | jq -r .reason | sort | uniq -c
      why they could not be delivered"""
# Seconds without output, after which progress is shown, and between two lines of it.
_PATIENCE: Final = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit status. Exits with 2 if the usage is wrong."""
    options = _parser().parse_args(arguments)
    try:
        if options.dead_letters:
            for letter in dead_letters(options.path):
                print(_json(letter))
        else:
            with closing(ProgressLine(sys.stderr)) as progress:
                found = inspect(options.path, progress)
            print(*_listing(found), sep="\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, needs no more. Python flushes the stream once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (OSError, ValueError) as error:
        print(f"purgatory.delayed: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0


class ProgressLine:
    """A line on a terminal that says how much was read, once that takes longer than half a second."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._next = clock() + _PATIENCE if stream.isatty() else inf
        self._shown = False

    def __call__(self, read: int, total: int) -> None:
        if self._clock() >= self._next:
            self._next = self._clock() + _PATIENCE
            self._shown = True
            self._print(f"\r{read:,} of {total:,} slot files read, {100 * read // total} %")

    def close(self) -> None:
        if self._shown:
            self._shown = False
            # To the start of the line, and delete it.
            self._print("\r\x1b[K")

    def _print(self, text: str) -> None:
        print(text, end="", file=self._stream, flush=True)


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m purgatory.delayed", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=raw
    )
    parser.add_argument("path", type=Path, metavar="PATH", help="the directory of a DelayedMessages")
    words = "print the messages that could not be delivered instead, one a line, in JSON"
    parser.add_argument("--dead-letters", action="store_true", help=words)
    return parser


def _listing(found: Inspection) -> Iterator[str]:
    yield f"{'due in the hour (UTC)':<30}{'messages':>14}{'bytes':>18}"
    for name, amount in [
        *((_moment(hour * 3600, "minutes"), due) for hour, due in found.hours.items()),
        ("all", found.pending),
    ]:
        yield f"{name:<30}{amount.messages:>14,}{amount.bytes:>18,}"
    yield f"\nslot files: {found.slot_files:,}, each of {found.slot:g} s"
    only = f"messages only there: {found.in_log.messages:,}"
    yield f"log segments: {found.segments:,}, with {found.log_bytes:,} bytes; {only}"
    yield f"dead letters: {found.dead_letters:,}"
    for what in found.damaged:
        yield f"damaged: {what}"


def _moment(seconds: float, precision: str) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat(" ", precision)
    except (ValueError, OverflowError, OSError):
        # A year that datetime does not know.
        return f"{seconds} s from 1970"


def _json(letter: DeadLetter) -> str:
    fields: dict[str, object] = {
        "id": letter.id,
        "due_utc": _moment(letter.due, "milliseconds"),
        "reason": letter.reason,
    }
    try:
        fields["payload"] = letter.payload.decode()
    except UnicodeDecodeError:
        fields["payload_base64"] = base64.b64encode(letter.payload).decode()
    return json.dumps(fields)
