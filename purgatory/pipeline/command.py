"""The command line: purgatory-pipeline."""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections.abc import Sequence
from typing import Final

from purgatory.pipeline.errors import PipelineError

FAILED: Final = 1
WRONG_USE: Final = 2
INTERRUPTED: Final = 130

_DESCRIPTION: Final = "From the journals of purgatories to tables, reports and advice, on Spark."
_NEEDED: Final = ("pyspark", "pyarrow")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status: 0, 1 where it failed, 2 where it could not be understood."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        return _fail(f"{' and '.join(missing)} not installed here; install purgatory's extra `spark`")
    # Here, because they need what has just been looked for.
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    from purgatory.pipeline.session import spark_session

    options = parser().parse_args(arguments)
    try:
        with spark_session(
            options.master,
            f"purgatory-pipeline {options.job.NAME}",
            progress=sys.stderr.isatty(),
            settings={"spark.driver.memory": options.memory, **dict(options.conf)},
        ) as spark:
            options.job.run(spark, options)
    except PipelineError as error:
        return _fail(str(error))
    except (PySparkException, Py4JJavaError) as error:
        return _fail(_words(str(error)))
    except (Py4JError, ConnectionRefusedError, ConnectionResetError):
        return _fail(
            "Spark's Java process has died, often for lack of memory; "
            f"give it more than --memory {options.memory}, or see above what it said"
        )
    except OSError as error:
        return _fail(f"{error}; put that right, or name another place")
    except KeyboardInterrupt:
        print("interrupted; run it again to go on", file=sys.stderr)
        return INTERRUPTED
    return 0


def parser() -> argparse.ArgumentParser:
    """Of all commands. What it parses has the command's module as `job`."""
    from purgatory.pipeline.jobs import JOBS

    whole = argparse.ArgumentParser(prog="purgatory-pipeline", description=_DESCRIPTION)
    commands = whole.add_subparsers(metavar="COMMAND", required=True)
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
    return whole


def _add_spark(parser: argparse.ArgumentParser) -> None:
    spark = parser.add_argument_group("Spark")
    spark.add_argument(
        "--master", default="local[*]", metavar="URL", help="the cluster to run on (default: %(default)s)"
    )
    spark.add_argument(
        "--memory",
        default="4g",
        metavar="SIZE",
        help="what the driver may use, which is all there is with a local master (default: %(default)s)",
    )
    spark.add_argument(
        "--conf",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other of Spark's settings; may be repeated",
    )


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, not {text!r}")
    return name, value


def _words(message: str) -> str:
    """What of it was written for people: all before the first stack trace."""
    if missing := re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", message):
        return (
            f"{missing[1]} is not installed where the executors run; install purgatory's extra `spark` "
            "on each worker, and name the Python that has it by PYSPARK_PYTHON"
        )
    return message.partition("\n\tat ")[0].strip()


def _fail(why: str) -> int:
    print(f"purgatory-pipeline: {why}", file=sys.stderr)
    return FAILED
