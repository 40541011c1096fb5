"""The command: ``python -m benchmarks.report``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.arguments import command_line
from benchmarks.report import run, site
from benchmarks.report.document import ReportError

DIRECTORY = Path("docs/benchmarks")
WRONG_FILE = 2

EXAMPLES = """\
example:
  python -m benchmarks --json asyncio.json
  python -m benchmarks.load --json load.json
  python -m benchmarks.report asyncio.json load.json
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pages for the files named on the command line."""
    parser = _parser()
    options = parser.parse_args(arguments)
    directory: Path = options.into
    try:
        files = site.site([run.read(file) for file in options.files])
        site.write(files, directory)
    except ReportError as error:
        parser.exit(WRONG_FILE, f"{error}\n")
    except OSError as error:
        parser.exit(WRONG_FILE, f"{error.filename}: cannot be written ({error.strerror})\n")
    print(f"{directory / 'README.md'}, and {len(files) - 1} files beside it")


def _parser() -> argparse.ArgumentParser:
    parser = command_line(
        "python -m benchmarks.report",
        "Writes tables and pictures of what the benchmarks have measured, as pages of Markdown.",
        EXAMPLES,
    )
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="what the benchmarks, or the load test, wrote with --json",
    )
    parser.add_argument(
        "--into",
        type=Path,
        default=DIRECTORY,
        metavar="DIRECTORY",
        help=f"where to write (default: {DIRECTORY})",
    )
    return parser


if __name__ == "__main__":
    main()
