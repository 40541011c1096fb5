"""The command line `purgatory-pipeline`."""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Final

from purgatory.pipeline.errors import PipelineError, UsageError
from purgatory.pipeline.faults import in_words

FAILED: Final = 1
USAGE_ERROR: Final = 2
INTERRUPTED: Final = 130

_DESCRIPTION: Final = "Turn the journals of purgatories into tables, reports and advice, on Spark."
_EXAMPLES: Final = """\
  %(prog)s run build/journal build/dataset build/page
      then open build/page/index.html
  %(prog)s compact build/journal build/dataset
  %(prog)s advise build/dataset
      runs one step
  %(prog)s COMMAND --help
      shows examples of the command"""
_NEEDED: Final = ("pyspark", "pyarrow", "deltalake", "duckdb")
_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")
_TRACEBACK: Final = "Traceback (most recent call last):"
_INSTALL: Final = "pip install 'asyncio-purgatory[spark]'"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status of the command, or 1 if the command failed.

    Exits with 2 if the usage is wrong.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        return _fail(f"{' and '.join(missing)} must be installed: {_INSTALL}")
    # These are imported here, after the check that they are installed.
    import duckdb
    from deltalake.exceptions import DeltaError
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    from purgatory.pipeline.session import spark_session

    options = parser().parse_args(arguments)
    # A name that the terminal cannot show must not end a command after all its work.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        options.job.check(options)
        with spark_session(
            options.master,
            f"purgatory-pipeline {options.job.NAME}",
            progress=sys.stderr.isatty(),
            short=options.job.NAME != "generate",
            settings={"spark.driver.memory": options.memory, **dict(options.conf)},
        ) as spark:
            status: int | None = options.job.run(spark, options)
    except PipelineError as error:
        return _fail(str(error), USAGE_ERROR if isinstance(error, UsageError) else FAILED)
    except (DeltaError, PySparkException, Py4JJavaError, duckdb.Error) as error:
        return _fail(_message(str(error)))
    except (Py4JError, ConnectionRefusedError, ConnectionResetError):
        return _fail(
            "Spark's Java process ended, often for lack of memory; "
            f"give it more than --memory {options.memory}, or read its output above"
        )
    except OSError as error:
        return _fail(f"{str(error).strip()}; fix the cause, or use another path")
    except KeyboardInterrupt:
        print("interrupted; run the command again to continue", file=sys.stderr)
        return INTERRUPTED
    return status or 0


def parser() -> argparse.ArgumentParser:
    """The parser of all commands. Parsed options have the command's module as `job`."""
    from purgatory.pipeline.jobs import JOBS

    main_parser = argparse.ArgumentParser(
        prog="purgatory-pipeline",
        description=_DESCRIPTION,
        epilog=f"examples:\n{_EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = main_parser.add_subparsers(metavar="COMMAND", required=True)
    for job in JOBS:
        command = commands.add_parser(
            job.NAME,
            help=job.SUMMARY,
            description=job.SUMMARY,
            epilog=f"examples:\n{job.EXAMPLES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(job=job)
        job.add_arguments(command)
        _add_spark(command)
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


def _message(message: str) -> str:
    """The cause that an error message of Spark names, without stack traces."""
    if missing := re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", message):
        return (
            f"{missing[1]} is not installed on the executors; {_INSTALL} on each worker, and set "
            "PYSPARK_PYTHON to the Python that has it"
        )
    what, _, stack = message.partition("\n\tat ")
    causes = re.findall(r"^Caused by: (.*)", stack, re.MULTILINE)
    if _TRACEBACK in what:
        # The last line that is not indented names the error.
        causes = [line for line in what.splitlines() if line[:1].strip()]
    return f"{causes[-1]}; fix the cause, and run the command again" if causes else what.strip()


def _fail(why: str, status: int = FAILED) -> int:
    # The messages of deltalake have several lines, with colours.
    line = in_words(why) or re.sub(r"\s*\n\s*", " ", _COLOUR.sub("", why).strip())
    print(f"purgatory-pipeline: {line}", file=sys.stderr)
    return status
