"""docs/promises.md names tests that exist, for every promise."""

from __future__ import annotations

import re

from tests.docs.programs import DOCS, ROOT

PAGE = (DOCS / "promises.md").read_text()


def test_every_promise_names_its_tests() -> None:
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]

    assert [section.partition(".")[0] for section in sections] == [str(n) for n in range(1, 15)]
    assert all(re.search(r"Tests: `", section) for section in sections)


def test_the_tests_that_it_names_exist() -> None:
    tests = (ROOT / "tests" / "core" / "test_promises.py").read_text()

    for prefix in re.findall(r"Tests: `(test_promise_\d\d_)…`", PAGE):
        assert f"def {prefix}" in tests, prefix
    for path in re.findall(r"`(tests/[\w/]+\.py)`", PAGE):
        assert (ROOT / path).is_file(), path
