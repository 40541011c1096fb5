"""Pictures are readable on any background, by anybody, and nothing in them is left to chance."""

from __future__ import annotations

from matplotlib.figure import Figure

from benchmarks.report import picture
from benchmarks.report.strokes import strokes


def _paint(figure: Figure) -> None:
    axes = figure.add_subplot()
    axes.plot([1, 2], [1, 2], "o")
    axes.set_title("costs $1, not $2")


def test_the_same_picture_is_the_same_bytes() -> None:
    assert picture.draw(2.0, _paint, "").svg == picture.draw(2.0, _paint, "").svg


def test_text_stays_text_and_dollars_dollars() -> None:
    assert ">costs $1, not $2</text>" in picture.draw(2.0, _paint, "").svg


def test_it_tells_nothing_about_when_and_with_what_it_was_made() -> None:
    svg = picture.draw(2.0, _paint, "").svg

    assert "date" not in svg
    assert "Matplotlib" not in svg


def test_its_background_is_white() -> None:
    background = picture.draw(2.0, _paint, "").svg.partition('id="patch_1"')[2].partition("</g>")[0]

    assert "fill: #ffffff" in background


def test_a_familiar_design_is_drawn_alike_in_all_pictures() -> None:
    some = strokes(["purgatory", "Future", "Kafka's present design", "heap"])
    other = strokes(["Kafka's present design", "Kafka 0.8's design", "purgatory"])

    assert some["Kafka's present design"] == other["Kafka's present design"]
    assert len(set(some.values())) == 4


def test_no_two_lines_look_the_same() -> None:
    names = ["purgatory", "purgatory, interpreted", "Kafka 0.8", "Kafka 0.8, otherwise", *map(str, range(20))]

    assigned = strokes(names)

    assert len({(stroke.color, stroke.dash, stroke.marker) for stroke in assigned.values()}) == len(names)
    own = {name for name, stroke in assigned.items() if stroke.color == picture.PURGATORY}
    assert own == {"purgatory", "purgatory, interpreted"}
