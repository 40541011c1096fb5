"""What is said of a user's object, whatever its own account of itself does."""

from __future__ import annotations


def safe_repr(subject: object) -> str:
    """Its repr(), or else what it is and why there is none.

    For reports: what they are about may be half made or half broken, and still they have to arrive.
    """
    try:
        return repr(subject)
    except Exception as error:
        return f"<{type(subject).__name__}, whose repr() raised {type(error).__name__}>"
