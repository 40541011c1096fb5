"""The command line `purgatory-pipeline`. Without Spark it gives help, and says what to install."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Final

from purgatory.pipeline.commands import parser
from purgatory.pipeline.errors import INSTALL, PipelineError, UsageError
from purgatory.pipeline.faults import in_words

FAILED: Final = 1
USAGE_ERROR: Final = 2
# As a shell reports a program that SIGINT or SIGPIPE has ended.
INTERRUPTED: Final = 130
UNREAD: Final = 141

_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status of the command, or 1 if the command failed.

    Exits with 2 if the usage is wrong.
    """
    # A name that the terminal cannot show must not end a command after all its work.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        return _run(arguments)
    except PipelineError as error:
        return _fail(str(error), USAGE_ERROR if isinstance(error, UsageError) else FAILED)
    except ModuleNotFoundError as error:
        return _fail(f"{error.name} must be installed: {INSTALL}")
    except BrokenPipeError:
        # The program that reads the output has ended, as `head` does. Python writes the rest of the output
        # when it ends, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except OSError as error:
        return _fail(f"{str(error).strip()}; fix the cause, or use another path")
    except KeyboardInterrupt:
        print("interrupted; run the command again to continue", file=sys.stderr)
        return INTERRUPTED


def _run(arguments: Sequence[str] | None) -> int:
    try:
        options = parser().parse_args(arguments)
        # This needs Spark, and the help does not.
        from purgatory.pipeline.execution import execute

        return execute(options)
    finally:
        sys.stdout.flush()


def _fail(why: str, status: int = FAILED) -> int:
    # The messages of deltalake have several lines, with colours.
    line = in_words(why) or re.sub(r"\s*\n\s*", " ", _COLOUR.sub("", why).strip())
    print(f"purgatory-pipeline: {line}", file=sys.stderr)
    return status
