"""Text for any terminal: also for one whose encoding has no box, bar or tick."""

import codecs
from io import TextIOWrapper
from typing import Final, TextIO

# The bars in the order of their heights, and then the other characters of the displays.
_ASCII: Final = dict(zip("▁▂▃▄▅▆▇█✓✗·╭╮╰╯─│━╸╺…", "._-:=+*#vx.++++-|---.", strict=True))
_ERRORS: Final = "in_ascii"


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_ASCII.get(character, "?") for character in text), error.end


codecs.register_error(_ERRORS, _in_ascii)


def print_anywhere(*streams: TextIO) -> None:
    """Write a character that the encoding of a stream lacks as one of ASCII, and never fail for it."""
    for stream in streams:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)
