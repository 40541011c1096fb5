"""Options within bounds are read as numbers; all others are refused with a message that names the bounds."""

from __future__ import annotations

from argparse import ArgumentParser

import pytest

from examples.arguments import number, whole


@pytest.fixture
def parser() -> ArgumentParser:
    parser = ArgumentParser()
    whole(parser.add_argument, "--count", 3, "how many", least=0)
    number(parser.add_argument, "--least", 0.5, "how long", least=0.5)
    number(parser.add_argument, "--above", 1, "how long", above=0)
    return parser


@pytest.mark.parametrize(
    ("arguments", "option", "value"),
    [
        ([], "count", 3),
        (["--count", "0"], "count", 0),
        (["--least", "0.5"], "least", 0.5),
        (["--above", "1e-9"], "above", 1e-9),
    ],
)
def test_a_number_within_its_bounds_is_read(
    parser: ArgumentParser, arguments: list[str], option: str, value: float
) -> None:
    assert getattr(parser.parse_args(arguments), option) == value


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("--count", "-1", "must be a whole number, 0 or more, not '-1'"),
        ("--count", "1.5", "must be a whole number, 0 or more, not '1.5'"),
        ("--least", "0.4", "must be a number 0.5 or more, not '0.4'"),
        ("--above", "0", "must be a number above 0, not '0'"),
        ("--above", "inf", "must be a number above 0, not 'inf'"),
        ("--above", "nan", "must be a number above 0, not 'nan'"),
        ("--above", "soon", "must be a number above 0, not 'soon'"),
    ],
)
def test_a_number_out_of_bounds_is_refused_with_its_bounds(
    parser: ArgumentParser, option: str, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args([f"{option}={text}"])
    assert capsys.readouterr().err.endswith(f"argument {option}: {message}\n")


def test_the_help_names_the_default(parser: ArgumentParser) -> None:
    assert "how many (default: 3)" in parser.format_help()
