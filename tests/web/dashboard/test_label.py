"""The text for users' keys, operations and errors."""

from __future__ import annotations

import tracemalloc

import pytest

from purgatory.web.dashboard.label import KEY_LENGTH, kind_of, label


class Named:
    def __init__(self, written: object) -> None:
        self.written = written

    def __repr__(self) -> str:
        if isinstance(self.written, Exception):
            raise self.written
        return self.written  # type: ignore[return-value]  # whatever it is


@pytest.mark.parametrize("value", ["topic", b"topic", 7, ("topic", 7), None, 1.5, Named("<Named>")])
def test_a_short_repr_is_shown_whole(value: object) -> None:
    assert label(value) == repr(value)


@pytest.mark.parametrize(
    "value",
    ["x" * 10**6, b"x" * 10**6, ("x" * 10**6,), tuple(range(10**6)), 10**400, Named("x" * 10**6)],
    ids=["str", "bytes", "tuple of str", "long tuple", "int", "object"],
)
def test_a_long_repr_is_cut(value: object) -> None:
    assert 5 < len(label(value)) <= KEY_LENGTH
    assert len(label(value, 20)) <= 20


def test_a_cut_repr_ends_with_an_ellipsis() -> None:
    assert label(Named("x" * 30), 20) == "x" * 19 + "…"
    assert label(Named("x" * 20), 20) == "x" * 20


@pytest.mark.parametrize(
    "key",
    ["x" * 10**6, b"x" * 10**6, tuple(range(10**5)), frozenset(range(10**5)), (b"x" * 10**6, frozenset("x"))],
    ids=["str", "bytes", "tuple", "frozenset", "within a tuple"],
)
def test_a_long_key_is_cut_before_its_repr_is_made(key: object) -> None:
    tracemalloc.start()
    try:
        label(key)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100_000


def test_the_repr_of_a_subclass_is_used() -> None:
    class Text(str):
        __slots__ = ()

    assert "..." in label("x" * 1000)
    assert label(Text("x" * 1000)) == "'" + "x" * (KEY_LENGTH - 2) + "…"


def test_a_large_frozenset_is_shown_by_its_size() -> None:
    assert label(frozenset(range(1000))) == "<frozenset of 1,000>"
    assert label(frozenset("x")) == repr(frozenset("x"))
    # A frozenset of six is shown whole, and one of seven is not.
    assert label(frozenset(range(6))) == repr(frozenset(range(6)))
    assert label(frozenset(range(7))) == "<frozenset of 7>"


@pytest.mark.parametrize("wrong", [ValueError("no"), None, 7], ids=["raises", "None", "int"])
def test_a_repr_that_fails_is_reported_in_its_place(wrong: object) -> None:
    assert label(Named(wrong)).startswith("<Named, whose repr() raised ")
    assert "<Named, whose repr() raised " in label((Named(wrong),))


def test_an_int_that_is_too_long_for_a_repr_is_reported() -> None:
    assert label(10**5000) == "<int, whose repr() raised ValueError>"


def test_a_class_with_the_name_of_a_built_in_type_is_not_taken_for_it() -> None:
    impostor = type("frozenset", (), {"__len__": lambda self: 1, "__repr__": lambda self: "<mine>"})
    assert label((impostor(),)) == "(<mine>,)"


@pytest.mark.parametrize(
    "character", ["\u202e", "\u2066", "\x1b", "\n", "\x00", "\ud800", "\u200b", "\u2028"], ids=ascii
)
def test_a_character_that_nobody_sees_is_escaped_also_in_a_repr_of_its_own(character: str) -> None:
    shown = label(Named(f"<{character}>"))
    assert shown == f"<{ascii(character)[1:-1]}>"


def test_a_character_that_nobody_sees_is_escaped_in_the_name_of_a_class() -> None:
    assert kind_of(type("Gate\u202e", (), {})()) == r"Gate\u202e"


def test_letters_of_all_languages_are_shown_as_they_are() -> None:
    text = "order-\u05e9\u05dc\u05d5\u05dd-\u4f60\u597d-\U0001f600"
    assert label(Named(text)) == text
