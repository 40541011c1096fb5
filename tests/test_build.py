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
static PyObject *
    Task_get_delay(TaskObject *self, void *closure)
    {
        PyObject *retval = PyFloat_FromDouble(self->_delay);
        return retval;
    }
static PyObject *CPyPy_Task___locate(PyObject *self) {
    tuple_T2OI retval = CPyDef_Task___locate(self);
    PyObject *retbox = PyTuple_New(2);
    if (unlikely(retbox == NULL))
        CPyError_OutOfMemory();
    PyObject *__tmp1 = retval.f0;
    PyTuple_SET_ITEM(retbox, 0, __tmp1);
    PyObject *__tmp2 = CPyTagged_StealAsObject(retval.f1);
    PyTuple_SET_ITEM(retbox, 1, __tmp2);
    return retbox;
}
char CPyDef_Task___tell(PyObject *cpy_r_self, CPyTagged cpy_r_tries, double cpy_r_at) {
    CPyTagged_INCREF(cpy_r_tries);
    cpy_r_r1 = CPyTagged_StealAsObject(cpy_r_tries);
    cpy_r_r2 = PyFloat_FromDouble(cpy_r_at);
    PyObject *cpy_r_r3[3] = {
        cpy_r_self, cpy_r_r1, cpy_r_r2
    };
    cpy_r_r4 = (PyObject **)&cpy_r_r3;
    cpy_r_r5 = PyObject_VectorcallMethod(cpy_r_r0, cpy_r_r4, 9223372036854775811ULL, 0);
    if (unlikely(cpy_r_r5 == NULL)) {
        goto CPyL1;
    }
    CPy_DECREF(cpy_r_r1);
    CPy_DECREF(cpy_r_r2);
    return 1;
CPyL1: ;
    CPy_DecRef(cpy_r_r1);
    CPy_DecRef(cpy_r_r2);
    return 2;
}
PyObject *CPyDef_Task___delay(PyObject *cpy_r_self) {
    cpy_r_r0 = ((TaskObject *)cpy_r_self)->_delay;
    if (cpy_r_r0) goto CPyL1;
    cpy_r_r1 = Py_None;
    cpy_r_r2 = cpy_r_r1;
    goto CPyL2;
CPyL1: ;
    cpy_r_r3 = PyFloat_FromDouble(cpy_r_r0);
    cpy_r_r2 = cpy_r_r3;
CPyL2: ;
    return cpy_r_r2;
}
char CPyDef_Task___note(PyObject *cpy_r_now, CPyTagged cpy_r_tries) {
    CPyTagged_INCREF(cpy_r_tries);
    cpy_r_r0 = CPyTagged_StealAsObject(cpy_r_tries);
    cpy_r_r1 = PyLong_Check(cpy_r_r0);
    CPy_DECREF(cpy_r_r0);
    cpy_r_r2 = CPyTagged_StealAsObject(cpy_r_tries);
    cpy_r_r3 = CPyDict_SetItem(cpy_r_now, cpy_r_r2, cpy_r_now);
    CPy_DECREF(cpy_r_r2);
    cpy_r_r4 = cpy_r_r3 >= 0;
    if (unlikely(!cpy_r_r4)) {
        goto CPyL1;
    }
    cpy_r_r5 = CPyTagged_StealAsObject(cpy_r_tries);
    cpy_r_r6 = CPyList_SetItem(cpy_r_now, 0, cpy_r_r5);
    if (unlikely(!cpy_r_r6)) {
        goto CPyL1;
    }
    return 1;
CPyL1: ;
    return 2;
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
.tp_dealloc = (destructor)Task_dealloc,
.tp_init = Task_init,
.tp_init = Sealed_init,
"""

# A function of its runtime, in short.
RUNTIME = """
PyErr_Fetch(&exc, &val, &tb);
#if CPY_3_12_FEATURES
_PyErr_ChainExceptions1(exc);
#endif
"""


@pytest.fixture(scope="module")
def setup_script() -> dict[str, Any]:
    script = Path(__file__).parent.parent / "setup.py"
    if not script.exists():
        pytest.skip("the tests of a wheel are run without the sources")
    return runpy.run_path(str(script))


def test_a_generated_allocation_copies_no_arguments(setup_script: dict[str, Any]) -> None:
    assert "= CPyDef_Task_____new__((PyObject*)type, args, kwds);" in setup_script["mend"](GENERATED)


def test_the_instances_of_subclasses_in_python_are_allocated_as_python_does(
    setup_script: dict[str, Any],
) -> None:
    mended = " ".join(setup_script["mend"](GENERATED).split())

    assert (
        "self = (TaskObject *)(type != CPyType_Task "
        "? PyBaseObject_Type.tp_new(type, __mypyc_empty_tuple__, NULL) : type->tp_alloc(type, 0)); "
        "if (self == NULL) return NULL; if (type != CPyType_Task) { self->vtable = Task_vtable_shadow; }"
    ) in mended


def test_generated_classes_give_back_every_reference(setup_script: dict[str, Any]) -> None:
    mended = " ".join(setup_script["mend"](GENERATED).split())

    assert "{ Py_VISIT(Py_TYPE(self)); Py_VISIT(self->_next);" in mended
    freed = (
        "PyTypeObject *type = Py_TYPE(self); type->tp_free((PyObject *)self); Py_DECREF(type); CPy_TRASHCAN_"
    )
    assert freed in mended
    assert "PyObject *none = CPyPy_Task_____init__(self, args, kwds); Py_XDECREF(none);" in mended
    assert "Sealed_init(PyObject *self, PyObject *args, PyObject *kwds) { return 0; }" in mended


def test_an_object_without_memory_for_it_is_not_used_but_raises(setup_script: dict[str, Any]) -> None:
    mended = " ".join(setup_script["mend"](GENERATED).split())

    call = "PyObject_VectorcallMethod(cpy_r_r0, cpy_r_r4, 9223372036854775811ULL, 0)"
    checked = f"unlikely(cpy_r_r1 == NULL) ? NULL : {call};"
    assert f"cpy_r_r5 = unlikely(cpy_r_r2 == NULL) ? NULL : {checked}" in mended
    for name in ("cpy_r_r1", "cpy_r_r2"):
        assert f"CPy_XDECREF({name});" in mended
        assert f"CPy_XDecRef({name});" in mended
    assert "cpy_r_r3 = unlikely(cpy_r_r2 == NULL) ? -1 : CPyDict_SetItem(cpy_r_now, cpy_r_r2," in mended
    assert "cpy_r_r6 = unlikely(cpy_r_r5 == NULL) ? 0 : CPyList_SetItem(cpy_r_now, 0, cpy_r_r5);" in mended


def test_an_object_that_is_returned_and_a_tuple_may_be_null(setup_script: dict[str, Any]) -> None:
    mended = " ".join(setup_script["mend"](GENERATED).split())

    assert "PyObject *retval = PyFloat_FromDouble(self->_delay); return retval;" in mended
    assert "cpy_r_r3 = PyFloat_FromDouble(cpy_r_r0); cpy_r_r2 = cpy_r_r3; CPyL2: ;" in mended
    assert "PyObject *retbox = PyTuple_New(2); PyObject *__tmp1 = retval.f0;" in mended
    assert "PyObject *__tmp2 = Number_New(retval.f1); SET_ITEM(retbox, 1, __tmp2); return retbox;" in mended


def test_an_int_needs_no_memory_to_be_an_int(setup_script: dict[str, Any]) -> None:
    mended = " ".join(setup_script["mend"](GENERATED).split())

    assert "CPyTagged_INCREF(cpy_r_tries); CPyTagged_DECREF(cpy_r_tries); cpy_r_r1 = 1;" in mended


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Nothing tells whether this call has raised.
        ("if (unlikely(cpy_r_r5 == NULL)) {", "if (cpy_r_r0) {"),
        # Another call may run before it with an exception set.
        ("PyObject *cpy_r_r3[3] = {", "cpy_r_r9 = PyObject_Size(cpy_r_self); PyObject *cpy_r_r3[3] = {"),
        # It is kept.
        ("return cpy_r_r2;", "self->_delay = cpy_r_r2;"),
    ],
)
def test_the_build_stops_where_an_object_goes_unchecked(
    setup_script: dict[str, Any], old: str, new: str
) -> None:
    assert old in GENERATED
    with pytest.raises(RuntimeError, match=r"CPyDef_Task___\w+: there may be no memory for cpy_r_r"):
        setup_script["mend"](GENERATED.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("CPyError_OutOfMemory();", "return NULL;"),
        ("PyObject *retval = PyFloat_FromDouble(self->_delay);", "return PyFloat_FromDouble(self->_delay);"),
        ("Task_clear((PyObject *)self);", "Task_clear((PyObject *)self); Py_CLEAR(self->dict);"),
        ("Py_TYPE(self)->tp_free((PyObject *)self);", "tp->tp_free(self); Py_DECREF(tp);"),
        ("CPy_TRASHCAN_BEGIN(self, Task_dealloc)", "CPy_TRASHCAN_BEGIN(self, Other_dealloc)"),
        ("PyObject_GC_UnTrack(self);", ""),
        ("(PyObject*)type, args, kwds", "type, args, kwds"),
        ("Py_VISIT(self->_next);", "Py_VISIT(self->_next); Py_VISIT(Py_TYPE(self));"),
        ("Task_traverse(", "Task_walk("),
        ("if (type != CPyType_Task)", "if (type == CPyType_Task)"),
        ("!= NULL ? 0 : -1", "== NULL ? -1 : 0"),
        ("return 0;\n}\nstatic PyObject", "return -1;\n}\nstatic PyObject"),
        (GENERATED, ""),
    ],
)
def test_the_build_stops_where_the_generated_code_is_not_what_it_mends(
    setup_script: dict[str, Any], old: str, new: str
) -> None:
    assert old in GENERATED
    with pytest.raises(RuntimeError, match="generates other C code than setup"):
        setup_script["mend"](GENERATED.replace(old, new))


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
    assert list(texts) == ["Task", "Task.run", "Task.due", "Sealed"]

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


def test_a_traceback_without_memory_for_it_leaves_the_exception_as_the_context(
    setup_script: dict[str, Any],
) -> None:
    code = setup_script["with_runtime"]("#include <exc_ops.c>\nstatic int x;", RUNTIME)

    kept = "{ _PyErr_ChainExceptions1(val); Py_XDECREF(exc); Py_XDECREF(tb); }"
    assert code == RUNTIME.replace("_PyErr_ChainExceptions1(exc);", kept) + "\nstatic int x;"


@pytest.mark.parametrize("runtime", ["", RUNTIME.replace("(exc);", "(val);")])
def test_another_runtime_of_mypyc_is_refused(setup_script: dict[str, Any], runtime: str) -> None:
    with pytest.raises(RuntimeError, match=r"build with mypy 2\.4"):
        setup_script["with_runtime"]("#include <exc_ops.c>", runtime)
