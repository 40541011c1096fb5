"""The page of the load test says who keeps up with what."""

from __future__ import annotations

from pathlib import Path

from benchmarks.report.load_page import load_page
from benchmarks.report.page import Page
from benchmarks.report.run import read
from tests.benchmarks.report import records
from tests.benchmarks.report.records import Record


def _page(directory: Path, load: Record) -> Page:
    run = read(records.write(directory, records.run(load=load)))
    assert run.load is not None
    return load_page(run, run.load)


def test_it_says_up_to_where_each_design_keeps_up(tmp_path: Path) -> None:
    text = _page(tmp_path, records.saturating()).text

    assert "| purgatory, compiled | 2,000 | no rate tried |\n" in text
    assert "| purgatory, interpreted | 1,000 | 2,000 |\n" in text
    assert "| Kafka 0.8's design | - | 1,000 |\n" in text


def test_a_rate_beyond_the_first_that_saturates_does_not_count(tmp_path: Path) -> None:
    points = (
        records.point(3_000, [3_000]),
        records.point(2_000, [1_000], saturated=True),
        records.point(1_000, [1_000]),
    )

    text = _page(tmp_path, records.load(records.curve("purgatory", "compiled", *points))).text

    assert "| purgatory | 1,000 | 2,000 |\n" in text


def test_all_figures_are_there_and_those_not_measured_are_dashes(tmp_path: Path) -> None:
    text = _page(tmp_path, records.saturating()).text

    assert "| 1,000 | 995 (990-1,000) | - | - | 1.50 (1.00-2.00) | 0.00 (0.00-0.00) | - |\n" in text
    assert "| 1,000 (saturated) | 550 (500-600) | - | - | - | 8.00 (7.00-9.00) | - |\n" in text


def test_it_says_why_kafkas_own_is_not_among_them(tmp_path: Path) -> None:
    load = records.saturating()

    without = _page(tmp_path, load).text
    load["kafka"] = {"available": True, "reason": None}
    with_it = _page(tmp_path, load).text

    assert "Kafka's own test on the JVM is not among them: there is no java here." in without
    assert "is not among them" not in with_it


def test_its_picture_is_beside_it_and_described(tmp_path: Path) -> None:
    page = _page(tmp_path, records.saturating())

    ((file, svg),) = page.pictures.items()
    assert f"]({file})" in page.text
    assert (
        "purgatory, compiled with all rates tried; purgatory, interpreted up to 1,000 requests/s" in page.text
    )
    for written in ("achieved, requests/s", "p99 lateness, milliseconds", "the generator alone"):
        assert f">{written}</text>" in svg


def test_without_a_point_there_is_no_picture(tmp_path: Path) -> None:
    page = _page(tmp_path, records.load(records.curve("purgatory", "compiled")))

    assert not page.pictures
    assert "| purgatory | - | no rate tried |\n" in page.text
