"""All pages and pictures of some runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.report import markdown
from benchmarks.report.document import ReportError
from benchmarks.report.index import index
from benchmarks.report.load_page import load_page
from benchmarks.report.page import Page
from benchmarks.report.question_page import question_page
from benchmarks.report.run import Run


def site(runs: Sequence[Run]) -> dict[str, str]:
    """Every file's text by its path: the index, and a directory for each loop.

    Raises ReportError when two runs answer the same question on the same loop.
    """
    files: dict[str, str] = {}
    links: list[tuple[Run, dict[str, str]]] = []
    shown: dict[str, Run] = {}
    for run in runs:
        linked: dict[str, str] = {}
        for page in _pages(run):
            directory = markdown.slug(run.loop)
            path = f"{directory}/{page.name}.md"
            if path in shown:
                raise ReportError(f"{run.file}: {page.name} on {run.loop} is in {shown[path].file} as well")
            shown[path] = run
            linked[path] = page.title
            files |= {f"{directory}/{name}": text for name, text in page.files()}
        links.append((run, linked))
    return {"README.md": index(links)} | files


def write(files: Mapping[str, str], directory: Path) -> None:
    """Put them there. Raises OSError where that is not possible."""
    for path, text in files.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _pages(run: Run) -> Iterator[Page]:
    for answer in run.answers:
        yield question_page(run, answer)
    if run.load is not None:
        yield load_page(run, run.load)
