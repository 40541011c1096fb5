"""Of the errors of task groups within each other, the first one is reported."""

from __future__ import annotations

import pytest

from examples.first_error import first_error

FIRST, SECOND, THIRD = (OSError(text) for text in ("first", "second", "third"))


@pytest.mark.parametrize(
    "errors",
    [
        ExceptionGroup("of one", [FIRST]),
        ExceptionGroup("of two", [FIRST, SECOND]),
        ExceptionGroup("outer", [ExceptionGroup("inner", [FIRST, SECOND]), THIRD]),
    ],
    ids=lambda errors: errors.message,
)
def test_the_first_error_is_found_however_deep_it_is(errors: ExceptionGroup[OSError]) -> None:
    assert first_error(errors) is FIRST
