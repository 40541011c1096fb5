"""Text for people: quantities in words, and names that are safe to print."""

from __future__ import annotations

from math import floor, log10


def duration(microseconds: float) -> str:
    """A duration in words: 310 µs, 4.75 s, 2 min 58 s, 3 h 5 min, 4 days.

    Below two minutes it has three digits. The dashboard writes durations in the same way.
    """
    seconds = microseconds / 1e6
    if round(seconds) >= 120:
        minutes = round(seconds / 60)
        if round(seconds) < 7200:
            return f"{round(seconds) // 60} min {round(seconds) % 60} s"
        if minutes < 48 * 60:
            return f"{minutes // 60} h {minutes % 60} min"
        return f"{round(seconds / 86400):,} days"
    # The limit prevents "1000 ms" where the rounded value is 1 s.
    units = (("µs", 1.0), ("ms", 1e3), ("s", 1e6))
    unit, size = next(each for each in units if microseconds / each[1] < 999.5)
    number = microseconds / size
    decimals = 0 if unit == "µs" or number >= 99.95 else 1 if number >= 9.995 else 2
    return f"{number:.{decimals}f} {unit}"


def percent(share: float) -> str:
    """A share in percent, rounded down to hundredths. Only nothing is 0 %, and only all is 100 %."""
    # The share has an error of up to 1e-9.
    hundredths = floor(10_000 * (share + 1e-9))
    return f"{hundredths / 100:g} %" if hundredths or share < 1e-9 else "< 0.01 %"


def rounded(number: float) -> str:
    """A number with at least three digits, and never with an exponent: 3,450, 34.5, 0.00345."""
    decimals = max(0, 2 - floor(log10(number))) if number else 0
    text = f"{number:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 operation, 2,000 operations."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def more(operations: float) -> str:
    """A difference of operations in words: 12 more, 12 fewer, or as many."""
    number = round(operations)
    return f"{abs(number):,} {'more' if number > 0 else 'fewer'}" if number else "as many"


def less(microseconds: float) -> str:
    """A difference of time in words: 2.00 s less, 2.00 s more, or as long."""
    if not round(microseconds):
        return "as long"
    return f"{duration(abs(microseconds))} {'less' if microseconds > 0 else 'more'}"


def printable(text: str) -> str:
    """The text without line breaks and control characters, which a terminal would obey.

    Names and keys come from the users of a service.
    """
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
