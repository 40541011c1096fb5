"""The error that a program reports when its task groups have ended."""

from __future__ import annotations


def first_error(errors: BaseExceptionGroup[Exception]) -> BaseException:
    """Return the first error of a group that is no group itself, however deep it is."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
