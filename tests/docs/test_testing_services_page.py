"""The tests that docs/how-to/testing-services.md shows pass: each runs the application once more."""

from __future__ import annotations

import re

import pytest

from tests.docs.programs import DOCS, programs_of

PAGE = DOCS / "how-to" / "testing-services.md"
TUTORIAL = DOCS / "tutorial.md"


def test_the_shown_tests_pass_with_the_settings_of_the_tutorial(pytester: pytest.Pytester) -> None:
    (tests,) = programs_of(PAGE)
    pytester.makepyfile(test_news=tests.code)
    (settings,) = re.findall(r"^```ini\n(.*?)^```$", TUTORIAL.read_text(), flags=re.DOTALL | re.MULTILINE)
    pytester.makeini(settings)

    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")

    result.assert_outcomes(passed=4)
    assert tests.printed == "4 passed\n"
