"""The tests that docs/how-to/testing-services.md shows pass with the application that it shows."""

from __future__ import annotations

import pytest

from tests.docs.programs import DOCS, programs_of

PAGE = DOCS / "how-to" / "testing-services.md"


def test_the_shown_tests_pass_with_the_shown_application(pytester: pytest.Pytester) -> None:
    application, conftest, tests = programs_of(PAGE)
    pytester.makepyfile(news=application.code, test_news=tests.code)
    pytester.makeconftest(conftest.code)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\npythonpath = .")

    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")

    result.assert_outcomes(passed=5)
    assert tests.printed == "5 passed\n"
