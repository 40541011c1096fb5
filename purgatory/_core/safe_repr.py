"""A repr() that never raises."""

from __future__ import annotations


def safe_repr(subject: object) -> str:
    """The repr() of `subject`, or its class and the class of the exception that its repr() raised.

    For reports about users' objects. Such an object may be half made or broken, and the report must arrive.
    """
    try:
        return repr(subject)
    except Exception as error:
        return f"<{type(subject).__name__}, whose repr() raised {type(error).__name__}>"
