"""The tests that docs/how-to/testing-services.md shows pass: each runs the application once more."""

from __future__ import annotations

import pytest

from tests.docs.programs import DOCS, programs_of

PAGE = DOCS / "how-to" / "testing-services.md"


def test_the_shown_tests_pass(pytester: pytest.Pytester) -> None:
    conftest, tests = programs_of(PAGE)
    pytester.makeconftest(conftest.code)
    pytester.makepyfile(test_news=tests.code)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")

    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")

    result.assert_outcomes(passed=5)
    assert tests.printed == "5 passed\n"
