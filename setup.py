"""Compiles the core with mypyc where that is possible; the rest of the build is in pyproject.toml."""

from __future__ import annotations

import os
from typing import Any

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

CORE = [
    "src/purgatory/action_queue.py",
    "src/purgatory/checks.py",
    "src/purgatory/condition.py",
    "src/purgatory/ledger.py",
    "src/purgatory/operation.py",
    "src/purgatory/purgatory.py",
    "src/purgatory/reaper.py",
    "src/purgatory/signals.py",
    "src/purgatory/stay.py",
    "src/purgatory/timer/task.py",
    "src/purgatory/timer/timer.py",
    "src/purgatory/timer/wheel.py",
    "src/purgatory/watchers.py",
]


class BuildCore(build_ext):
    """All of the core or none of it: what is compiled cannot be imported without the rest."""

    failed = False

    def build_extension(self, ext: Any) -> None:
        if self.failed:
            raise CompileError(f"{ext.name} is left interpreted, because another part did not compile")
        try:
            super().build_extension(ext)
        except BaseException:
            self.failed = True
            raise


def extensions() -> list[Any]:
    if os.environ.get("PURGATORY_PURE_PYTHON", "") not in ("", "0"):
        return []
    from mypyc.build import mypycify

    compiled = mypycify(CORE, opt_level="3", debug_level="0", group_name="purgatory")
    for extension in compiled:
        # Without a C compiler the build goes on, and the same files run interpreted.
        extension.optional = True
        if os.name == "posix":
            # No other library's functions may stand in for the core's own: calls go straight, or are inlined.
            extension.extra_compile_args += ["-fvisibility=hidden", "-fno-semantic-interposition"]
    return compiled


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildCore})
