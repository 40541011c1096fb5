"""The tests run on the build that was asked for."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from setuptools import Distribution, Extension
from setuptools.errors import CompileError

import purgatory
import purgatory._core.watchers


def test_compiled_is_true_when_the_core_is_no_python_file() -> None:
    interpreted = Path(purgatory._core.watchers.__file__ or "").suffix == ".py"
    assert purgatory.COMPILED is not interpreted


def test_the_build_under_test_is_the_one_asked_for() -> None:
    assert purgatory.COMPILED is (os.environ.get("PURGATORY_REQUIRE_COMPILED") == "1")


@pytest.mark.skipif(purgatory.COMPILED, reason="only an interpreted core can be refused")
def test_an_interpreted_core_is_refused_where_a_compiled_one_is_required() -> None:
    refused = subprocess.run(
        [sys.executable, "-c", "import purgatory"],
        env={**os.environ, "PURGATORY_REQUIRE_COMPILED": "1"},
        text=True,
        capture_output=True,
        check=False,
    )
    assert "ImportError: PURGATORY_REQUIRE_COMPILED is set, but the core" in refused.stderr


# A class that Python can subclass, and the initialization of another one, as mypyc writes them.
GENERATED = """
static PyObject *Task_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    PyObject *self = CPyPy_Task_____new__((PyObject*)type, args, kwds);
    return self;
}
PyObject *Task_setup(PyObject *cpy_r_type)
{
    PyTypeObject *type = (PyTypeObject*)cpy_r_type;
    TaskObject *self;
    self = (TaskObject *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    if (type != CPyType_Task) {
        self->vtable = Task_vtable_shadow;
    } else {
        self->vtable = Task_vtable;
    }
    return (PyObject *)self;
}
static int Task_init(PyObject *self, PyObject *args, PyObject *kwds)
{
    return CPyPy_Task_____init__(self, args, kwds) != NULL ? 0 : -1;
}
static int Sealed_init(PyObject *self, PyObject *args, PyObject *kwds)
{
    return 0;
}
static int Task_traverse(TaskObject *self, visitproc visit, void *arg)
{
    Py_VISIT(self->_next);
    return 0;
}
static void Task_dealloc(TaskObject *self)
{
    PyObject_GC_UnTrack(self);
    CPy_TRASHCAN_BEGIN(self, Task_dealloc)
    Task_clear((PyObject *)self);
    Py_TYPE(self)->tp_free((PyObject *)self);
    CPy_TRASHCAN_END(self)
    done: ;
}
char CPyDef_Engine_check_thread(PyObject *self)
{
    cpy_r_r0 = CPyDef_engine___thread_id();
    return cpy_r_r0 != self->_thread;
}
.tp_dealloc = (destructor)Task_dealloc,
.tp_init = Task_init,
.tp_init = Sealed_init,
"""


@pytest.fixture(scope="module")
def setup_script() -> dict[str, Any]:
    script = Path(__file__).parent.parent / "setup.py"
    if not script.exists():
        pytest.skip("the tests of a wheel are run without the sources")
    return runpy.run_path(str(script))


@pytest.fixture(scope="module")
def mended(setup_script: dict[str, Any]) -> str:
    code, _ = setup_script["mend"](GENERATED)
    return " ".join(code.split())


def test_a_deallocation_gives_back_the_reference_to_the_class(mended: str) -> None:
    freed = "PyTypeObject *type = Py_TYPE(self); type->tp_free((PyObject *)self); Py_DECREF(type);"
    assert f"Task_clear((PyObject *)self); {freed} CPy_TRASHCAN_END(self)" in mended


def test_a_traversal_visits_the_class(mended: str) -> None:
    assert "visitproc visit, void *arg) { Py_VISIT(Py_TYPE(self)); Py_VISIT(self->_next);" in mended


def test_an_initialization_gives_back_what_init_returns(mended: str) -> None:
    assert (
        "PyObject *none = CPyPy_Task_____init__(self, args, kwds); Py_XDECREF(none); "
        "return none != NULL ? 0 : -1;"
    ) in mended
    assert "Sealed_init(PyObject *self, PyObject *args, PyObject *kwds) { return 0; }" in mended


def test_the_instances_of_subclasses_in_python_are_allocated_as_python_does(mended: str) -> None:
    assert (
        "self = (TaskObject *)(type != CPyType_Task "
        "? PyBaseObject_Type.tp_new(type, __mypyc_empty_tuple__, NULL) : type->tp_alloc(type, 0)); "
        "if (self == NULL) return NULL; if (type != CPyType_Task) { self->vtable = Task_vtable_shadow; }"
    ) in mended


def test_a_creation_copies_no_arguments(mended: str) -> None:
    assert "= CPyDef_Task_____new__((PyObject*)type, args, kwds);" in mended


def test_a_check_asks_c_for_its_thread(mended: str) -> None:
    assert "cpy_r_r0 = PyThread_get_thread_ident(); return cpy_r_r0 != self->_thread;" in mended


def test_the_build_says_what_it_mends(setup_script: dict[str, Any]) -> None:
    _, said = setup_script["mend"](GENERATED + GENERATED)
    assert said == "2 deallocations, 2 traversals, 2 initializations, 2 instances, 2 threads, 2 creations"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Another mypyc gives the reference back.
        ("Py_TYPE(self)->tp_free((PyObject *)self);", "tp->tp_free(self); Py_DECREF(tp);"),
        ("tp_free((PyObject *)self);", "tp_free((PyObject *)self); Py_DECREF(type);"),
        # Another mypyc visits the class, or a class has no traversal.
        ("    Py_VISIT(self->_next);", "    Py_VISIT(Py_TYPE(self));"),
        ("Task_traverse(", "Task_walk("),
        ("!= NULL ? 0 : -1", "== NULL ? -1 : 0"),
        ("    return 0;\n}\nstatic int Task", "    return -1;\n}\nstatic int Task"),
        ("if (type != CPyType_Task)", "if (type == CPyType_Task)"),
        ("(PyObject*)type, args, kwds", "(PyObject*)type, args"),
    ],
)
def test_the_build_stops_where_the_generated_code_is_not_what_it_mends(
    setup_script: dict[str, Any], old: str, new: str
) -> None:
    assert old in GENERATED
    # One class as expected hides no other one.
    for expected in "", GENERATED:
        with pytest.raises(RuntimeError, match=r"other C code than setup\.py mends .* build with mypy 2\.4"):
            setup_script["mend"](expected + GENERATED.replace(old, new))


def test_the_build_stops_where_there_is_nothing_to_mend(setup_script: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match=r"mends \(0 of 0 deallocations\)"):
        setup_script["mend"]("")


SOURCE = '''
class Task:
    """A task."""

    def run(self):
        """Say "it" is due.

        Once.
        """

    def stop(self): ...

    @property
    def due(self):
        """Whether it is due."""

class Sealed:
    """Not for subclasses."""
'''

TABLES = """
static PyMethodDef task___Task_methods[] = {
    {"run",
     (PyCFunction)CPyPy_task___Task___run,
     METH_FASTCALL | METH_KEYWORDS, PyDoc_STR("run($self)\\n--\\n\\n")},
    {"stop",
     (PyCFunction)CPyPy_task___Task___stop,
     METH_FASTCALL | METH_KEYWORDS, PyDoc_STR("stop($self)\\n--\\n\\n")},
};
static PyGetSetDef task___Task_getseters[] = {
    {"_due",
     (getter)task___Task_get__due, (setter)task___Task_set__due,
     NULL, NULL},
    {"due",
     (getter)task___Task_get_due,
    NULL, NULL, NULL},
};
static PyTypeObject CPyType_Task_template_ = {
    .tp_name = "Task",
    .tp_init = Task_init,
    .tp_doc = PyDoc_STR("Task()\\n--\\n\\n"),
};
static PyTypeObject CPyType_Sealed_template_ = {
    .tp_name = "Sealed",
    .tp_doc = PyDoc_STR(NULL),
};
"""


def test_generated_classes_methods_and_properties_get_their_docstrings(setup_script: dict[str, Any]) -> None:
    texts = dict(setup_script["docstrings"](SOURCE))
    assert list(texts) == [("Task", ""), ("Task", "run"), ("Task", "due"), ("Sealed", "")]

    documented = setup_script["document"](TABLES, texts)

    assert r'PyDoc_STR("run($self)\n--\n\n" "Say \"it\" is due.\n\nOnce.")' in documented
    assert r'PyDoc_STR("stop($self)\n--\n\n")' in documented
    assert "(setter)task___Task_set__due,\n     NULL, NULL}" in documented
    assert '(getter)task___Task_get_due,\n    NULL,  "Whether it is due.", NULL}' in documented
    assert r'PyDoc_STR("Task()\n--\n\n" "A task."),' in documented
    assert 'PyDoc_STR( "Not for subclasses."),' in documented


def test_a_build_that_fails_says_why_and_leaves_no_compiled_module_of_an_earlier_one(
    setup_script: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.chdir(tmp_path)
    names = ["first", "second"]
    for name in names:
        (tmp_path / f"{name}.c").touch()
    extensions = [Extension(name, [f"{name}.c"], optional=True) for name in names]
    build = setup_script["BuildCore"](Distribution({"name": "trial", "ext_modules": extensions}))
    build.build_lib = build.build_temp = str(tmp_path)
    build.ensure_finalized()
    stale = [Path(build.get_ext_fullpath(name)) for name in names]
    for module in stale:
        module.touch()
        os.utime(module, (0, 0))

    build.run()

    assert not any(module.exists() for module in stale)
    said = setup_script["outcome"](build)
    assert re.match(r"the core is interpreted, because the C compiler failed: .*no-such-compiler", said)


def test_the_build_says_which_core_it_has_built_and_why(
    setup_script: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outcome = setup_script["outcome"]
    assert outcome(None) == "the core is interpreted, because PURGATORY_PURE_PYTHON is set."
    build = setup_script["BuildCore"](Distribution())
    assert outcome(build) == "the core is compiled."
    build.failure = CompileError("exit code 1")
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    assert outcome(build).startswith(
        "the core is interpreted, because Python.h is missing; install the headers"
    )
