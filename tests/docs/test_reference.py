"""The reference describes every public name."""

from __future__ import annotations

import importlib
import re

import pytest

from tests.docs.programs import DOCS


@pytest.mark.parametrize("module", ["purgatory", "observer", "journal", "delayed", "otel", "relay", "web"])
def test_every_exported_name_is_described(module: str) -> None:
    page = (DOCS / "reference" / f"{module}.md").read_text()
    described = set(re.findall(r"^\.\. \w+:: (\w+)$", page, flags=re.MULTILINE))

    # A page of their own describes all of them.
    errors = set(vars(importlib.import_module("purgatory.errors")))
    name = "purgatory" if module == "purgatory" else f"purgatory.{module}"
    assert set(importlib.import_module(name).__all__) - errors <= described


def test_the_errors_are_those_of_the_module() -> None:
    assert ".. automodule:: purgatory.errors\n   :members:" in (DOCS / "reference" / "errors.md").read_text()
