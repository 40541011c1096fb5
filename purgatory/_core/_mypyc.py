"""What only the compiler reads: a decorator, and the type of an int that compiled code does not allocate.

Interpreted, the decorator does nothing, and the type is int. So only a build needs the package
mypy_extensions. This module is not compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import i32, i64, mypyc_attr
else:
    i32 = i64 = int

    def mypyc_attr(**_attributes):
        return lambda decorated: decorated


__all__ = ["i32", "i64", "mypyc_attr"]
