"""Text that is safe to print. Names and keys come from the users of a service."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text without line breaks and control characters, which a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
