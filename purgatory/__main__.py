"""``python -m purgatory`` prints what runs here: the version, the build, the interpreter, the event loops."""

from __future__ import annotations

import argparse
import contextlib
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from purgatory import COMPILED, __version__
from purgatory._core import operation


def loops() -> list[str]:
    """The event loops that are installed."""
    found = ["asyncio"]
    with contextlib.suppress(PackageNotFoundError):
        found.append(f"uvloop {version('uvloop')}")
    return found


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m purgatory",
        description="Print the versions of purgatory and anyio, whether the core is compiled or interpreted "
        "and where it is, the interpreter, and the event loops that are installed.",
        epilog="other commands: python -m purgatory.delayed (lists delayed messages), purgatory-pipeline "
        "(reads journals; needs the extra `spark`)",
    ).parse_args()
    print(f"purgatory {__version__}, anyio {version('anyio')}")
    print(f"core: {'compiled' if COMPILED else 'interpreted'}, {operation.__file__}")
    print(f"interpreter: {platform.python_implementation()} {platform.python_version()}, {sys.executable}")
    print(f"event loops: {', '.join(loops())}")


if __name__ == "__main__":
    main()
