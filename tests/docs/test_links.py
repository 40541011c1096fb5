"""Links between the documents, and from the code to the documents, lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.programs import PAGES, ROOT

WITHOUT_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, made as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.stem)
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    prose = WITHOUT_CODE.sub("", page.read_text())
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), link
        assert not anchor or anchor in anchors_of(target), link


@pytest.mark.parametrize("directory", ["purgatory", "examples", "benchmarks"])
def test_every_document_that_the_code_names_exists(directory: str) -> None:
    for source in (ROOT / directory).rglob("*.py"):
        for document in re.findall(r"docs/[\w/-]+\.\w+", source.read_text()):
            assert (ROOT / document).is_file(), f"{source} names {document}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_and_module_of_the_project_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text()
    for path in re.findall(r"`((?:purgatory|examples|benchmarks|tests|docs)/[\w./-]*)", text):
        assert (ROOT / path).exists(), path
    for module in re.findall(r"python -m ((?:purgatory|examples|benchmarks)[\w.]*)", text):
        source = ROOT.joinpath(*module.split("."))
        assert source.with_suffix(".py").exists() or (source / "__main__.py").exists(), module
