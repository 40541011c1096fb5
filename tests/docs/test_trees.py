"""The trees of files that pages show are those of the sources."""

from __future__ import annotations

import re

from tests.docs.programs import DOCS, ROOT


def test_the_architecture_names_every_file_of_the_core() -> None:
    page = (DOCS / "architecture.md").read_text()
    named = set(re.findall(r"^ +(\w+\.py) ", page, flags=re.MULTILINE))

    package = ROOT / "purgatory"
    core = {path.name for path in (package / "_core").rglob("*.py")}
    assert core <= named
    assert named <= core | {path.name for path in package.glob("*.py")}


def test_the_tree_of_the_broker_has_its_packages() -> None:
    tree = (DOCS / "broker.md").read_text().partition("examples/broker/\n")[2].partition("```")[0]
    named = set(re.findall(r"^  (\w+)/", tree, flags=re.MULTILINE))

    broker = ROOT / "examples" / "broker"
    assert named == {path.parent.name for path in broker.glob("*/__init__.py")}
    for module in re.findall(r"^  (\w+\.py)", tree, flags=re.MULTILINE):
        assert (broker / module).is_file(), module
