"""What is shown of users' values."""

from __future__ import annotations

import tracemalloc

import pytest

from purgatory.web.dashboard.label import KEY_LENGTH, label


class Named:
    def __init__(self, written: object) -> None:
        self.written = written

    def __repr__(self) -> str:
        if isinstance(self.written, Exception):
            raise self.written
        return self.written  # type: ignore[return-value]  # whatever it is


@pytest.mark.parametrize("value", ["topic", b"topic", 7, ("topic", 7), None, 1.5, Named("<Named>")])
def test_what_is_short_is_shown_as_its_repr(value: object) -> None:
    assert label(value) == repr(value)


@pytest.mark.parametrize(
    "value",
    ["x" * 10**6, b"x" * 10**6, ("x" * 10**6,), tuple(range(10**6)), 10**400, Named("x" * 10**6)],
    ids=["str", "bytes", "tuple of str", "long tuple", "int", "object"],
)
def test_what_is_long_is_cut(value: object) -> None:
    assert 5 < len(label(value)) <= KEY_LENGTH
    assert len(label(value, 20)) <= 20


def test_a_cut_says_that_it_is_one() -> None:
    assert label(Named("x" * 30), 20) == "x" * 19 + "…"
    assert label(Named("x" * 20), 20) == "x" * 20


@pytest.mark.parametrize(
    "key",
    ["x" * 10**6, b"x" * 10**6, tuple(range(10**5)), frozenset(range(10**5)), (b"x" * 10**6, frozenset("x"))],
    ids=["str", "bytes", "tuple", "frozenset", "within a tuple"],
)
def test_a_long_key_is_cut_before_it_is_written(key: object) -> None:
    tracemalloc.start()
    try:
        label(key)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100_000


def test_what_may_have_a_repr_of_its_own_is_asked_for_it() -> None:
    class Text(str):
        __slots__ = ()

    assert "..." in label("x" * 1000)
    assert label(Text("x" * 1000)) == "'" + "x" * (KEY_LENGTH - 2) + "…"


def test_of_a_large_frozenset_it_says_just_how_large() -> None:
    assert label(frozenset(range(1000))) == "<frozenset of 1,000>"
    assert label(frozenset("x")) == repr(frozenset("x"))


@pytest.mark.parametrize("wrong", [ValueError("no"), None, 7], ids=["raises", "None", "int"])
def test_a_repr_that_fails_says_so(wrong: object) -> None:
    assert label(Named(wrong)).startswith("<Named whose repr() raised ")


def test_an_int_too_long_to_be_written_says_so() -> None:
    assert label(10**5000) == "<int whose repr() raised ValueError>"
