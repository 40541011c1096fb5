"""A decorator that only the compiler reads.

mypyc reads `mypyc_attr` in the source and drops it. On the interpreted build the decorator does nothing. So
only a build needs the package mypy_extensions. This module itself is not compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:

    def mypyc_attr(**_attributes):
        return lambda decorated: decorated


__all__ = ["mypyc_attr"]
