"""The tests that docs/how-to/virtual-time.md shows end as it says."""

from __future__ import annotations

import pytest

from tests.docs.programs import DOCS, programs_of

PAGE = DOCS / "how-to" / "virtual-time.md"


def test_the_shown_tests_pass_and_fail_as_the_page_says(pytester: pytest.Pytester) -> None:
    conftest, tests = (program for program in programs_of(PAGE) if "pytest" in program.code)
    pytester.makeconftest(conftest.code)
    pytester.makepyfile(test_waiting=tests.code)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")

    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")

    result.assert_outcomes(passed=1, failed=1)
    assert tests.printed is not None
    dots, failure, summary = tests.printed.splitlines()
    result.stdout.fnmatch_lines([f"{dots} *", failure.replace("...", "*"), f"{summary} in *"])
