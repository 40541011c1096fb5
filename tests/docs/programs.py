"""The programs in README.md and docs/: each Python block, and the text block after it with what it prints."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

# docs/benchmarks is generated.
PAGES = [ROOT / "README.md", *sorted(page for page in DOCS.rglob("*.md") if "benchmarks" not in page.parts)]

# A longer line of code is cut on a screen of 1280 pixels.
WIDTH = 88

# The blocks of this page are one module, which its own tests run.
BUGS = DOCS / "how-to" / "bugs-you-need-not-write.md"

_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<printed>.*?)^```\n)?", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Program:
    """A Python block of a page."""

    page: Path
    line: int
    code: str
    printed: str | None
    """What the page says it prints; None where no text block follows."""

    @property
    def module(self) -> str | None:
        """The module that the reader saves it as, where its first line is a comment that says so."""
        named = re.match(r"# (\w+)\.py\n", self.code)
        return named[1] if named else None

    @property
    def name(self) -> str:
        """Its module, or else the page and the line, as file names of modules can have them."""
        page = self.page.relative_to(ROOT).with_suffix("").as_posix()
        return self.module or re.sub(r"\W", "_", f"{page}_line_{self.line}")


def programs_of(page: Path) -> Iterator[Program]:
    text = page.read_text()
    for block in _BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 2
        yield Program(page, line, block["code"], block["printed"])


PROGRAMS = [program for page in PAGES if page != BUGS for program in programs_of(page)]
BUGS_MODULE = "\n\n".join(program.code for program in programs_of(BUGS))


def write_programs(directory: Path) -> list[Path]:
    """Write each program into a file of its own. Returns the files."""
    directory.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        (directory / f"{program.name}.py").write_text(program.code)
    (directory / "bugs_you_need_not_write.py").write_text(BUGS_MODULE)
    return sorted(directory.iterdir())


if __name__ == "__main__":
    write_programs(Path(sys.argv[1]))
