"""The file with the positions of a partition."""

from pathlib import Path

import pytest

from examples.delayed.wheel.positions import Positions, load_positions, store_positions


def test_positions_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "positions.json"
    assert load_positions(path) is None
    for positions in (Positions(1, 0), Positions(70_000, 3)):
        store_positions(path, positions)
        assert load_positions(path) == positions


def test_a_file_that_was_written_in_part_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "positions.json"
    store_positions(path, Positions(5, 4))
    path.with_suffix(".new").write_bytes(b'{"records": 9')
    assert load_positions(path) == Positions(5, 4)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "positions.json"
    path.write_bytes(b'{"records": 9')
    with pytest.raises(ValueError, match="delimiter"):
        load_positions(path)
