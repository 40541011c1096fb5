"""What the command line says of each command. It is imported without Spark, so help needs none of it."""

from __future__ import annotations

import argparse
import re
from typing import Final, Protocol

from purgatory.pipeline.commands import (
    advise,
    compact,
    generate,
    optimize,
    prune,
    replay,
    report,
    run,
    summarize,
    watch,
)

_DESCRIPTION: Final = "Turn the journals of purgatories into tables, reports and advice, on Spark."
_EXAMPLES: Final = """\
  %(prog)s run build/journal build/dataset build/page
      then open build/page/index.html
  %(prog)s compact build/journal build/dataset
  %(prog)s advise build/dataset
      runs one step
  %(prog)s COMMAND --help
      shows examples of the command"""


class Command(Protocol):
    """What the command line says of a command. Each command is a module, and COMMANDS lists it."""

    @property
    def NAME(self) -> str: ...

    @property
    def SUMMARY(self) -> str:
        """What the command does, in one line."""

    @property
    def EXAMPLES(self) -> str:
        """Examples for --help; %(prog)s stands for the name of the command."""

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None: ...


# The commands have the order in which a newcomer uses them.
COMMANDS: Final[tuple[Command, ...]] = (
    generate,
    run,
    compact,
    summarize,
    advise,
    replay,
    report,
    watch,
    prune,
    optimize,
)


def parser() -> argparse.ArgumentParser:
    """The parser of all commands. Parsed options have the name of the command as `command`."""
    main_parser = argparse.ArgumentParser(
        prog="purgatory-pipeline",
        description=_DESCRIPTION,
        epilog=f"examples:\n{_EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parsers = main_parser.add_subparsers(metavar="COMMAND", dest="command", required=True)
    for command in COMMANDS:
        own = parsers.add_parser(
            command.NAME,
            help=command.SUMMARY,
            description=command.SUMMARY,
            epilog=f"examples:\n{command.EXAMPLES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(own)
        _add_spark(own)
    return main_parser


def _add_spark(parser: argparse.ArgumentParser) -> None:
    spark = parser.add_argument_group("Spark")
    spark.add_argument(
        "--master", default="local[*]", metavar="URL", help="the Spark cluster (default: %(default)s)"
    )
    spark.add_argument(
        "--memory",
        type=_memory,
        default="4g",
        metavar="SIZE",
        help="the memory of the driver; with a local master, the memory of all of Spark "
        "(default: %(default)s)",
    )
    spark.add_argument(
        "--conf",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another setting of Spark; may be repeated",
    )


def _memory(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d*[kmgt]b?", text.lower()):
        raise argparse.ArgumentTypeError(f"must be a number and one of k, m, g, t, as in 4g, not {text!r}")
    return text


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, not {text!r}")
    return name, value
