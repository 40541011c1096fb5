"""Compiles `purgatory/_core` with mypyc where there is a C compiler. All else is in pyproject.toml.

Two environment variables choose the build. With ``PURGATORY_PURE_PYTHON=1`` nothing is compiled. With
``PURGATORY_REQUIRE_COMPILED=1`` a core that does not compile is an error; otherwise it stays interpreted.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

# Commands of the build backend that describe the distribution, and compile nothing.
DESCRIPTIONS = {"egg_info", "dist_info", "sdist"}
CORE = sorted(str(path) for path in Path("purgatory/_core").rglob("*.py") if path.name != "_mypyc.py")

# What `mend` changes in the C code of mypyc 2.4: a name, a pattern that counts its places, the code there,
# and what it becomes. docs/builds.md has the reports to mypyc ("What the build mends").
MENDS = [
    # An instance refers to its class. CPython asks the deallocation to give that reference back, and the
    # traversal to show it to the garbage collector. Unmended, a class that a function defines stays for ever.
    # Each class needs a traversal, because the trashcan of the deallocation writes to the collector's header.
    (
        "deallocations",
        r"\.tp_dealloc = ",
        r"Py_TYPE\(self\)(->tp_free\(\(PyObject \*\)self\);)(?=\s+CPy_TRASHCAN_END\()",
        r"PyTypeObject *type = Py_TYPE(self); type\1 Py_DECREF(type);",
    ),
    (
        "traversals",
        r"\.tp_dealloc = ",
        r"(_traverse\(\w+ \*self, visitproc visit, void \*arg\)\s+\{)(?!\s+Py_VISIT\(Py_TYPE\()",
        r"\1 Py_VISIT(Py_TYPE(self));",
    ),
    # Nothing gives back the None that `__init__` returns. Before Python 3.12 its references are counted.
    (
        "initializations",
        r"_init\(PyObject \*self, PyObject \*args, PyObject \*kwds\)\s+\{(?!\s+return 0;)",
        r"return (CPyPy_\w+_____init__\(self, args, kwds\)) != NULL \? 0 : -1;",
        r"PyObject *none = \1; Py_XDECREF(none); return none != NULL ? 0 : -1;",
    ),
    # `object.__new__` refuses a class with abstract methods. On Python 3.11 and 3.12, it has the instances of
    # a class without `__slots__` share the names of their fields, so that each is 296 bytes smaller.
    (
        "instances",
        r"_vtable_shadow;",
        r"type->tp_alloc\(type, 0\)(?=;\s+if \(self == NULL\)\s+return NULL;\s+if \((type != \w+)\) \{)",
        r"(\1 ? PyBaseObject_Type.tp_new(type, __mypyc_empty_tuple__, NULL) : type->tp_alloc(type, 0))",
    ),
    # The thread of each check is looked at. Through Python that takes 25 ns of 270.
    ("threads", r"= CPyDef_\w+thread_id\(", r"(?<== )CPyDef_\w+thread_id\(", "PyThread_get_thread_ident("),
    # Each `__new__` of the core ignores its arguments. Not to copy them saves 3 % of a wait's instructions.
    ("creations", r"new__\(\(PyObject\*\)", r"CPyPy(?=\w+new__\(\(PyObject\*\)type, args, kwds\))", "CPyDef"),
]


class BuildCore(build_ext):
    """Builds all of the core or none of it, because a compiled module cannot import an interpreted one."""

    failure: BaseException | None = None

    def build_extension(self, ext: Any) -> None:
        try:
            if self.failure is not None:
                raise CompileError(f"{ext.name} stays interpreted, because another part did not compile")
            super().build_extension(ext)
        except BaseException as failure:
            self.failure = self.failure or failure
            # An earlier build may have left it there, from other sources.
            Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
            raise


def outcome(build: Any) -> str:
    """Which core was built, and why. `build` is the command that ran, None where nothing was to compile."""
    if build is not None and build.failure is None:
        return "the core is compiled."
    if build is None:
        reason = "PURGATORY_PURE_PYTHON is set"
    elif not Path(sysconfig.get_path("include"), "Python.h").exists():
        reason = "Python.h is missing; install the headers of Python (on Debian: python3-dev)"
    else:
        reason = f"the C compiler failed: {build.failure}"
    return f"the core is interpreted, because {reason}."


def is_set(variable: str) -> bool:
    return os.environ.get(variable, "") not in ("", "0")


def mend(code: str) -> tuple[str, str]:
    """The C code, mended, and what was mended. Raises RuntimeError at the code of another mypyc."""
    counts = []
    for name, place, old, new in MENDS:
        places = len(re.findall(place, code))
        code, mended = re.subn(old, new, code)
        if not mended == places > 0:
            raise RuntimeError(
                f"this mypy generates other C code than setup.py mends ({mended} of {places} {name}): "
                "build with mypy 2.4, or set PURGATORY_PURE_PYTHON=1 to compile nothing"
            )
        counts.append(f"{mended} {name}")
    return code, ", ".join(counts)


def docstrings(code: str) -> Iterator[tuple[tuple[str, str], str]]:
    """The docstring of each class and method of a module, as a literal of C. A class has the method ""."""
    for owner in ast.walk(ast.parse(code)):
        if isinstance(owner, ast.ClassDef):
            for part in [owner, *owner.body]:
                if isinstance(part, ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(part)):
                    yield (owner.name, "" if part is owner else part.name), json.dumps(text)


def document(code: str, texts: dict[tuple[str, str], str]) -> str:
    """The C code with the docstrings, which mypyc leaves out. It writes the signatures alone."""

    def add(match: re.Match[str]) -> str:
        text = texts.get((match["owner"], match["name"]))
        return f"{match['before']}{match['signature'] or ''} {text}" if text else match[0]

    for place in (
        r'\.tp_name = "(?P<owner>\w+)",[^;]*?\.tp_doc = PyDoc_STR\((?P<name>)',
        r'{"(?P<name>\w+)",\s+\(PyCFunction\)CPyPy_\w+?___(?P<owner>[A-Z]\w*?)___(?P=name),[^{}]*PyDoc_STR\(',
        r'{"(?P<name>\w+)",\s+\(getter\)\w+?___(?P<owner>[A-Z]\w*?)_get_(?P=name),[^{}]*,\s+(?=NULL, NULL})',
    ):
        code = re.sub(rf'(?P<before>{place})(?:NULL|(?P<signature>"[^"]*"))', add, code)
    return code


def extensions() -> list[Any]:
    if is_set("PURGATORY_PURE_PYTHON") or DESCRIPTIONS.intersection(sys.argv[1:2]):
        return []
    from mypyc.build import mypycify

    compiled = mypycify(CORE, opt_level="3", debug_level="0", group_name="purgatory")
    # The first extension is the whole core, in one file. The others load their modules from it.
    (core,) = map(Path, compiled[0].sources)
    texts = dict(text for path in CORE for text in docstrings(Path(path).read_text("utf-8")))
    code, mended = mend(core.read_text("utf-8"))
    core.write_text(document(code, texts), "utf-8")
    print(f"purgatory: mended in the generated C: {mended}")
    for extension in compiled:
        # Without a C compiler the build goes on, and the same files run interpreted.
        extension.optional = not is_set("PURGATORY_REQUIRE_COMPILED")
    if os.name == "posix":
        # No function of another library can replace one of the core, so that calls are direct or inlined.
        compiled[0].extra_compile_args += ["-fvisibility=hidden", "-fno-semantic-interposition"]
    return compiled


if __name__ == "__main__":
    distribution = setup(ext_modules=extensions(), cmdclass={"build_ext": BuildCore})
    if distribution.have_run.get("build_ext") or distribution.have_run.get("build"):
        # An extension is compiled by its command; without one the command is not there.
        command = distribution.get_command_obj("build_ext") if distribution.ext_modules else None
        print(f"purgatory: {outcome(command)}")
