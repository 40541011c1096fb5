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

CORE = sorted(str(path) for path in Path("purgatory/_core").rglob("*.py"))

# What `mend` changes in the C code of mypyc 2.4: the first code of each pair becomes the second. A name in
# angle brackets stands for any identifier, and a space for any white space.
#
# Each instance holds a reference to its class. CPython asks the deallocation to give it back, and the
# traversal to show it to the garbage collector, for subclasses written in Python as well
# (https://docs.python.org/3/howto/isolating-extensions.html, "Heap Types"). The code of mypyc does neither.
# Unmended, it keeps a class that a function defines for ever, with all that its methods refer to.
DEALLOCATION = (
    "<name>_dealloc(<type> *self) { PyObject_GC_UnTrack(self); CPy_TRASHCAN_BEGIN(self, <name>_dealloc) "
    "<clear>((PyObject *)self); Py_TYPE(self)->tp_free((PyObject *)self); CPy_TRASHCAN_END(self) done: ; }",
    "<name>_dealloc(<type> *self) { PyObject_GC_UnTrack(self); CPy_TRASHCAN_BEGIN(self, <name>_dealloc) "
    "<clear>((PyObject *)self); PyTypeObject *type = Py_TYPE(self); type->tp_free((PyObject *)self); "
    "Py_DECREF(type); CPy_TRASHCAN_END(self) done: ; }",
)
TRAVERSAL = (
    "<name>_traverse(<type> *self, visitproc visit, void *arg) {",
    "<name>_traverse(<type> *self, visitproc visit, void *arg) { Py_VISIT(Py_TYPE(self));",
)
# Nothing gives back the None that __init__ returns. Before Python 3.12 its references are counted.
INITIALIZATION = (
    "<name>_init(PyObject *self, PyObject *args, PyObject *kwds) { "
    "return <init>(self, args, kwds) != NULL ? 0 : -1; }",
    "<name>_init(PyObject *self, PyObject *args, PyObject *kwds) { "
    "PyObject *none = <init>(self, args, kwds); Py_XDECREF(none); return none != NULL ? 0 : -1; }",
)
# On Python 3.11 and 3.12, `object.__new__` has the instances of a class without `__slots__` share the names
# of their fields. `tp_alloc` alone does not, so that each gets a dictionary of its own, 296 bytes more.
# `object.__new__` refuses a class with abstract methods, too.
INSTANCE = (
    "<object> *self; self = (<object> *)type->tp_alloc(type, 0); if (self == NULL) return NULL; "
    "if (type != <class>) { self->vtable = <vtable>_shadow;",
    "<object> *self; self = (<object> *)(type != <class> ? "
    "PyBaseObject_Type.tp_new(type, __mypyc_empty_tuple__, NULL) : type->tp_alloc(type, 0)); "
    "if (self == NULL) return NULL; if (type != <class>) { self->vtable = <vtable>_shadow;",
)
# A `__new__` of the core ignores its arguments, so it is called without a copy of them.
ALLOCATION = re.compile(r"CPyPy_(\w+_____new__\(\(PyObject\*\)type, args, kwds\))")
# mypyc makes an object of each number that Python code gets, and tuples, as if there were always memory for
# them. Where there is none, its code goes on with NULL or ends the process. Mended, such an object is NULL,
# and the call that it was made for is left out and counts as one that has raised. An int needs no object to
# be one.
OBJECTS = """
static inline PyObject *Number_New(CPyTagged number)
{
    return CPyTagged_CheckLong(number)
        ? CPyTagged_LongAsObject(number) : CPyLong_FromSsize_t(CPyTagged_ShortAsSsize_t(number));
}
#define SET_ITEM(tuple, index, item) do { \\
    if (likely(tuple != NULL && item != NULL)) PyTuple_SET_ITEM(tuple, index, item); \\
    else { Py_XDECREF(item); Py_CLEAR(tuple); } \\
} while (0)
"""
INT_CHECK = (
    "<object> = CPyTagged_StealAsObject(<int>); <result> = PyLong_Check(<object>); CPy_DECREF(<object>);",
    "CPyTagged_DECREF(<int>); <result> = 1;",
)
TUPLE = (
    "<tuple> = PyTuple_New(<size>); if (unlikely(<tuple> == NULL)) CPyError_OutOfMemory();",
    "<tuple> = PyTuple_New(<size>);",
)
# The start of a function, and of an object in it.
FUNCTION = re.compile(r"^(?=\s*(?!else\b)(?:static\s+)?\w+[\s*]+\w+\([^;{}]*\)\s*\{$)", re.MULTILINE)
MAKER = r"\b(?:Number_New|PyFloat_FromDouble|PyTuple_New)\("
OBJECT = re.compile(rf"\b(\w+) = {MAKER}")
# What may stand between an object and the call that it is made for.
BETWEEN = {"Number_New", "PyFloat_FromDouble", "PyTuple_New", "SET_ITEM", "CPy_INCREF", "CPyTagged_INCREF"}
# Where there is no memory to add a function to the traceback of an exception, that exception becomes the
# context of the MemoryError. From Python 3.12 on, the runtime of mypyc makes its class the context instead,
# so that nobody can print the error.
CONTEXT = (
    "PyErr_Fetch(&exc, &val, &tb);",
    "_PyErr_ChainExceptions1(exc);",
    "{ _PyErr_ChainExceptions1(val); Py_XDECREF(exc); Py_XDECREF(tb); }",
)
UNKNOWN = (
    "this version of mypy generates other C code than setup.py mends: "
    "build with mypy 2.4, or set PURGATORY_PURE_PYTHON=1 to compile nothing"
)
# Python cannot subclass this class, and its tp_new calls __init__.
NO_INITIALIZATION = "<name>_init(PyObject *self, PyObject *args, PyObject *kwds) { return 0; }"


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


def pattern(code: str) -> re.Pattern[str]:
    """A regular expression for `code`, in which a name that comes again stands for the same identifier."""
    expression = re.escape(code).replace(r"\ ", r"\s+")
    for name in set(re.findall(r"<(\w+)>", code)):
        first, *others = expression.split(f"<{name}>")
        expression = rf"{first}\b(?P<_{name}>\w+)" + f"(?P=_{name})".join(others)
    return re.compile(expression)


def mend(code: str) -> str:
    """The C code with all its classes mended.

    Raises RuntimeError where one of them is not as expected. So the code of another mypyc cannot go unmended.
    A class without traversal has no header for the garbage collector, where the trashcan of its deallocation
    writes all the same (https://github.com/python/cpython/issues/135682). So that is an error, too.
    """
    classes = code.count(".tp_dealloc = ")
    initialized = code.count(".tp_init = ") - len(pattern(NO_INITIALIZATION).findall(code))
    subclassed = code.count("_vtable_shadow;")
    known = "Py_VISIT(Py_TYPE(" not in code
    for count, change in (
        (classes, DEALLOCATION),
        (classes, TRAVERSAL),
        (initialized, INITIALIZATION),
        (subclassed, INSTANCE),
    ):
        code, mended = substitute(code, change)
        known = known and mended == count > 0
    code, direct = ALLOCATION.subn(r"CPyDef_\1", code)
    known = known and direct > 0
    tuples = code.count("PyTuple_New(")
    code, mended = substitute(code, TUPLE)
    known = known and mended == tuples
    code, _ = substitute(code, INT_CHECK)
    code = code.replace("CPyTagged_StealAsObject(", "Number_New(").replace("PyTuple_SET_ITEM(", "SET_ITEM(")
    known = known and len(re.findall(MAKER, code)) == len(OBJECT.findall(code))
    if not known:
        raise RuntimeError(UNKNOWN)
    start = code.rfind("#include") + 1
    start = code.find("\n", start) + 1 if start else 0
    return code[:start] + OBJECTS + "".join(map(guard, FUNCTION.split(code[start:])))


def with_runtime(code: str, runtime: str) -> str:
    """The C code with the file `exc_ops.c` of the runtime, mended, in place of its inclusion."""
    fetched, old, new = CONTEXT
    included = "#include <exc_ops.c>"
    if (code.count(included), runtime.count(fetched), runtime.count(old)) != (1, 1, 1):
        raise RuntimeError(UNKNOWN)
    return code.replace(included, runtime.replace(old, new))


def substitute(code: str, change: tuple[str, str]) -> tuple[str, int]:
    """The C code with one of the changes, and how often it was made."""
    old, new = change
    return pattern(old).subn(re.sub(r"<(\w+)>", r"\\g<_\1>", new), code)


def guard(function: str) -> str:
    """The C code of one function, without a use of an object that there was no memory for.

    Raises RuntimeError where an object is not returned, and no call that may raise comes right after it. The
    statements of a module are left alone: an import without memory may end the process.
    """
    if "_____top_level__(void)" in function:
        return function
    for name in OBJECT.findall(function):
        end = function.index(";", function.index(f"{name} = "))
        before, after = function[:end], function[end:]
        moved = re.search(rf"^\s*(\w+) = {name};$", after, re.MULTILINE)
        result = moved[1] if moved else name
        uses = re.findall(rf"^\s*(.*\b(?:{name}|{result})\b.*)$", after, re.MULTILINE)
        if all(re.match(rf"return \w+;|SET_ITEM\(|(?!{name}\b){result} = ", use) for use in uses):
            continue
        array = re.search(rf"PyObject \*(\w+)\[\d+\] = {{[^}}]*\b{name}\b[^}}]*}};\s+(\w+) = .*&\1;", after)
        call = re.search(
            rf"\b(?P<result>\w+) = (?P<call>\w+\([^;]*\b{array[2] if array else name}\b[^;]*\));"
            r"(?=(?:\s*\w+_X?(?:DECREF|DecRef)\w*\(\w+\);)*\s*(?:\w+ = |if \((?:unlikely\()?)"
            r"(?:(?P=result) == (?P<error>[^;)]+)|(?P=result) (?P<code>>= 0)|!(?P=result))[;)])",
            after,
        )
        if call is None or not BETWEEN.issuperset(re.findall(r"\b(\w+)\(", after[: call.start()])):
            raise RuntimeError(
                f"{function.strip().partition('(')[0]}: there may be no memory for {name}, and no call that "
                f"may raise takes it at once. Have a function return it, which is checked{after[:400]}"
            )
        error = call["error"] or ("-1" if call["code"] else "0")
        checked = f"unlikely({name} == NULL) ? {error} : {call['call']}"
        after = after[: call.start("call")] + checked + after[call.end("call") :]
        function = before + re.sub(rf"\bCPy_(DECREF|DecRef)(\w*\({name}\))", r"CPy_X\1\2", after)
    return function


def docstrings(code: str) -> Iterator[tuple[str, str]]:
    """The docstring of each class and method of a module, as a literal of C, under its qualified name."""
    for definition in ast.walk(ast.parse(code)):
        if isinstance(definition, ast.ClassDef):
            for part in [definition, *definition.body]:
                if isinstance(part, ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(part)):
                    name = definition.name if part is definition else f"{definition.name}.{part.name}"
                    yield name, json.dumps(text)


def document(code: str, texts: dict[str, str]) -> str:
    """The C code with the docstrings, which mypyc leaves out. It writes the signatures alone."""
    owner = "|".join({name.partition(".")[0] for name in texts})

    def add(match: re.Match[str]) -> str:
        name = ".".join(filter(None, match.group("owner", "name")))
        before, signature = match.group("before", "signature")
        signature = "" if signature == "NULL" else signature
        return f"{before}{signature} {texts[name]}" if name in texts else match.group()

    for place in (
        rf"""(?P<before>\.tp_name = "(?P<owner>{owner})",[^;]*?\.tp_doc = PyDoc_STR\()(?P<name>)""",
        rf"""(?P<before>{{"(?P<name>\w+)",\s+\(PyCFunction\)CPyPy_\w+?___(?P<owner>{owner})___(?P=name),"""
        r"""[^{]*PyDoc_STR\()""",
        rf"""(?P<before>{{"(?P<name>\w+)",\s+\(getter\)\w+?___(?P<owner>{owner})_get_(?P=name),[^{{}}]*,\s+)"""
        r"""(?=NULL, NULL})""",
    ):
        code = re.sub(place + r"""(?P<signature>NULL|"[^"]*")""", add, code)
    return code


def extensions() -> list[Any]:
    if is_set("PURGATORY_PURE_PYTHON") or DESCRIPTIONS.intersection(sys.argv[1:2]):
        return []
    from mypyc.build import include_dir, mypycify

    compiled = mypycify(CORE, opt_level="3", debug_level="0", group_name="purgatory")
    # The first extension is the whole core, in one file. The others load their modules from it.
    (core,) = map(Path, compiled[0].sources)
    texts = {name: text for path in CORE for name, text in docstrings(Path(path).read_text("utf-8"))}
    runtime = Path(include_dir(), "exc_ops.c").read_text("utf-8")
    core.write_text(with_runtime(document(mend(core.read_text("utf-8")), texts), runtime), "utf-8")
    for extension in compiled:
        # Without a C compiler the build goes on, and the same files run interpreted.
        extension.optional = not is_set("PURGATORY_REQUIRE_COMPILED")
        if os.name == "posix":
            # No function of another library can replace one of the core, so that calls are direct or inlined.
            flags = ["-fvisibility=hidden", "-fno-semantic-interposition"]
            # All extensions of a group share one list of arguments.
            extension.extra_compile_args = [*extension.extra_compile_args, *flags]
    return compiled


if __name__ == "__main__":
    distribution = setup(ext_modules=extensions(), cmdclass={"build_ext": BuildCore})
    if distribution.have_run.get("build_ext") or distribution.have_run.get("build"):
        # An extension is compiled by its command; without one the command is not there.
        command = distribution.get_command_obj("build_ext") if distribution.ext_modules else None
        print(f"purgatory: {outcome(command)}")
