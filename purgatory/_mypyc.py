"""What is said to the compiler alone.

mypyc reads the decorator in the source and drops it. Interpreted, it has nothing to do; so the package
that defines it is needed for a build, and never to run. This module is not compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:

    def mypyc_attr(**_attributes):
        return lambda decorated: decorated


__all__ = ["mypyc_attr"]
