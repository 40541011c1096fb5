"""The operation as its users extend it, and the check of the names that they give."""

from __future__ import annotations

import ast
import inspect
import linecache
import warnings
from collections.abc import Generator, Iterator, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

from purgatory._core.operation import HOOKS, PROTECTED_NAMES, Operation
from purgatory._core.waiting import abandon, claim, future_for, settled, wake_when_done

R = TypeVar("R")


class DelayedOperation(Operation, Generic[R]):
    """An operation that waits for a condition, or for its timeout, whichever comes first.

    Subclass it, call ``super().__init__(timeout)``, and override `try_complete`. Override `on_complete` and
    `on_expiration` where there is a result or something to clean up. Offer it to a purgatory with
    `Purgatory.try_complete_else_watch`. Awaiting is optional: its hooks run anyway.

    `timeout` is in seconds, and counts from the offer. None and infinity never expire. With zero or less the
    condition is tried once, and the operation expires at once if it does not hold. Raises ValueError for NaN
    and TypeError for anything that is not a number.

    Make an operation for each wait. Calling `__init__` again on one that was offered raises RuntimeError.
    Copying and pickling raise TypeError.

    The names of its methods and properties, except the hooks, belong to the library, and so do `_state`,
    `_timeout`, `_waiters` and the like. A subclass that overrides one, or assigns to it in a method, is
    refused with TypeError, and so is an `async def` hook. (Assignments are looked for in the source. Where
    there is none, only debug mode sees them.)

    The model is Kafka's `DelayedOperation`, with two differences. A finished wait costs no memory. An
    exception in a hook ends that operation (FAILED) and nothing else. (The exception of a FAILED
    operation keeps its frames alive, and so the operation itself, until the garbage collector runs.)
    """

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        check_names(cls, _PROTECTED)
        for hook in HOOKS:
            if inspect.iscoroutinefunction(getattr(cls, hook)):
                mend = (
                    "Override condition() of an AsyncDelayedOperation instead"
                    if hook == "try_complete"
                    else "Write `def`, and create a task where something has to be awaited"
                )
                raise TypeError(
                    f"{cls.__name__}.{hook} must not be `async def`: the purgatory does not wait in a hook. "
                    f"{mend}"
                )

    if TYPE_CHECKING:

        def __init__(self, timeout: float | None) -> None: ...
        def on_complete(self) -> R: ...
        def complete(self, value: R) -> bool: ...
        def result(self) -> R: ...
        def reschedule(self, timeout: float | None) -> bool: ...
        def try_again_in(self, seconds: float | None) -> bool: ...

    else:
        # Here it comes before the __new__ of `Operation`, from which `inspect` would take the signature.
        __init__ = Operation.__init__

        @property
        def add_done_callback(self) -> NoReturn:
            """Not supported: use `asyncio.ensure_future(operation)`."""
            raise AttributeError(
                f"{type(self).__name__} is an awaitable, neither a future nor a task: asyncio.wait() and "
                "done callbacks need asyncio.ensure_future(operation), which makes a task that awaits it"
            )

    def __await__(self) -> Generator[Any, None, R]:
        """The result, as soon as there is one. Cancelling the last waiting task withdraws the operation.

        Raises OperationWithdrawn when somebody else withdraws it. Raises RuntimeError for an operation that
        was not offered yet, and in another event loop than the purgatory's, where the task would wait
        forever.
        """
        if not settled(self):
            # Each task gets a future of its own, for its wake-up only. Cancelling a task cancels the future
            # that it awaits, and the operation must outlive that while another task awaits it.
            waiter = future_for(self)
            wake_when_done(self, waiter)
            # `yield from waiter` does the same, but makes an iterator.
            waiter._asyncio_future_blocking = True
            try:
                yield waiter
            except BaseException:
                abandon(self, waiter)
                raise
        claim(self)
        # A subclass may have a field of this name.
        outcome: R = Operation.result(self)
        return outcome


# The names that no subclass may use for anything else, by the base that they belong to.
_PROTECTED: Final[Mapping[type, frozenset[str]]] = {DelayedOperation: PROTECTED_NAMES}


def check_names(made: type, protected: Mapping[type, frozenset[str]]) -> None:
    """Raise TypeError for a class that overrides, or assigns to, a name that belongs to one of its bases.

    `protected` has the names of each base. What comes behind a base in the order of the bases does not
    override it.
    """
    for place, base in enumerate(made.__mro__):
        for kind in made.__mro__[:place]:
            names = protected.get(base, frozenset())
            for name in sorted(names.intersection(vars(kind))):
                raise TypeError(
                    f"{kind.__name__}.{name} overrides a name that belongs to the library: rename it"
                )
            for method in _methods(kind):
                for name in _assigned(method, names):
                    raise TypeError(
                        f"{kind.__name__}.{method.__name__} sets self.{name}, a name that belongs to the "
                        "library: choose another name"
                    )


def _methods(kind: type) -> Iterator[FunctionType]:
    """The functions whose first parameter is the instance, as far as no decorator hides them."""
    for member in vars(kind).values():
        for function in (member.fget, member.fset) if isinstance(member, property) else (member,):
            if isinstance(function, FunctionType) and function.__code__.co_argcount:
                yield function


# Inside these, the name of the first parameter may mean something else.
_INNER: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def _assigned(method: FunctionType, names: frozenset[str]) -> Iterator[str]:
    """The names among `names` to which the method assigns, as attributes of its first parameter.

    The source tells. Without it there are none. It does not tell of `setattr`, nor of assignments in inner
    functions or elsewhere. (Debug mode looks at the operation itself, when it is offered.)
    """
    code = method.__code__
    if names.isdisjoint(code.co_names):
        return
    nodes = _parsed(method)
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name, ctx=ast.Store()):
                if owner == code.co_varnames[0] and name in names:
                    yield name
        nodes += [each for each in ast.iter_child_nodes(node) if not isinstance(each, _INNER)]


def _parsed(method: FunctionType) -> list[ast.AST]:
    """The syntax tree of the method. There is none without the source."""
    code = method.__code__
    try:
        # inspect.getsource would look for the module first, in all that are imported.
        linecache.checkcache(code.co_filename)
        lines = linecache.getlines(code.co_filename, method.__globals__)
        source = "".join(inspect.getblock(lines[code.co_firstlineno - 1 :]))
        # The compiler has given its warnings already.
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(f"if True:\n{source}" if source[:1].isspace() else source)
    except Exception:
        # After the import, somebody has written something else into the file.
        return []
    functions: list[ast.AST] = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name
    ]
    return functions[:1]
