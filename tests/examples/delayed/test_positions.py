"""The file with the positions of a partition."""

from pathlib import Path

import pytest

from examples.delayed.wheel.positions import Positions, PositionsFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "positions.json"


def test_positions_are_read_back(path: Path) -> None:
    file = PositionsFile(path)
    assert file.stored is None
    for positions in (Positions(1, 0), Positions(70_000, 3)):
        file.store(positions)
        assert PositionsFile(path).stored == file.stored == positions


def test_a_file_that_was_written_in_part_does_not_count(path: Path) -> None:
    PositionsFile(path).store(Positions(5, 4))
    path.with_suffix(".new").write_bytes(b'{"records": 9')
    assert PositionsFile(path).stored == Positions(5, 4)


def test_a_damaged_file_is_refused(path: Path) -> None:
    path.write_bytes(b'{"records": 9')
    with pytest.raises(ValueError, match="delimiter"):
        PositionsFile(path)
