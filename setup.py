"""Compiles `purgatory/_core` with mypyc where there is a C compiler. All else is in pyproject.toml.

Two environment variables choose the build. With ``PURGATORY_PURE_PYTHON=1`` nothing is compiled. With
``PURGATORY_REQUIRE_COMPILED=1`` a core that does not compile is an error; otherwise it stays interpreted.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

CORE = sorted(str(path) for path in Path("purgatory/_core").rglob("*.py"))


class BuildCore(build_ext):
    """Builds all of the core or none of it, because a compiled module cannot import an interpreted one."""

    failed = False

    def build_extension(self, ext: Any) -> None:
        if self.failed:
            raise CompileError(f"{ext.name} stays interpreted, because another part did not compile")
        try:
            super().build_extension(ext)
        except BaseException:
            self.failed = True
            raise


def is_set(variable: str) -> bool:
    return os.environ.get(variable, "") not in ("", "0")


def extensions() -> list[Any]:
    if is_set("PURGATORY_PURE_PYTHON"):
        return []
    from mypyc.build import mypycify

    compiled = mypycify(CORE, opt_level="3", debug_level="0", group_name="purgatory")
    for extension in compiled:
        # Without a C compiler the build goes on, and the same files run interpreted.
        extension.optional = not is_set("PURGATORY_REQUIRE_COMPILED")
        if os.name == "posix":
            # No function of another library can replace one of the core, so that calls are direct or inlined.
            flags = ["-fvisibility=hidden", "-fno-semantic-interposition"]
            # All extensions of a group share one list of arguments.
            extension.extra_compile_args = [*extension.extra_compile_args, *flags]
    return compiled


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildCore})
