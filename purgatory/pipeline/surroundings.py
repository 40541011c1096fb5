"""Variables, and a user, with which Spark would end in a long stack trace."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from purgatory.pipeline.errors import PipelineError


def check(master: str, environment: Mapping[str, str] = os.environ) -> None:
    """Raise PipelineError if Spark cannot start here. The message names the variable, and the fix."""
    _check_home(environment.get("SPARK_HOME"))
    python = environment.get("PYSPARK_PYTHON")
    # On a cluster it is a path of the workers.
    if python and master.startswith("local") and shutil.which(python) is None:
        raise PipelineError(f"PYSPARK_PYTHON names {python}, which is no program here; unset it")
    arguments = environment.get("PYSPARK_SUBMIT_ARGS")
    if arguments and arguments.split()[-1:] != ["pyspark-shell"]:
        raise PipelineError(
            f"PYSPARK_SUBMIT_ARGS is {arguments!r}, and must end with pyspark-shell; unset it, and use --conf"
        )
    _check_user()


def _check_home(home: str | None) -> None:
    if not home:
        return
    if not Path(home, "bin").is_dir():
        raise PipelineError(f"SPARK_HOME names {home}, which has no Spark; unset it")
    needed = version("pyspark")
    found = [
        match[1]
        for jar in Path(home, "jars").glob("spark-core_*.jar")
        if (match := re.fullmatch(r"spark-core_[\d.]+-(.+)\.jar", jar.name))
    ]
    if found and needed not in found:
        raise PipelineError(f"SPARK_HOME names Spark {found[0]}, and this needs {needed}; unset it")


def _check_user() -> None:
    try:
        # Windows has no such list of users.
        import pwd
    except ImportError:
        return
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        raise PipelineError(
            f"the user {os.getuid()} has no name, which Spark needs; add the user to /etc/passwd, or run "
            "the command as another user"
        ) from None
