"""The paths of a dataset."""

from purgatory.pipeline.compaction import Compaction
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.schemas import GAPS_TABLE


def test_all_paths_of_a_dataset_are_below_its_root() -> None:
    dataset = Dataset("hdfs://host/data/")
    assert (dataset.operations, dataset.checks, dataset.gaps) == tuple(
        f"hdfs://host/data/{name}" for name in ("operations", "checks", "gaps")
    )
    assert dataset.summary("minutes") == "hdfs://host/data/summary/minutes"
    assert dataset.advice("curves") == "hdfs://host/data/advice/curves"


def test_the_repr_of_a_compaction_has_its_counts_and_its_dataset() -> None:
    assert repr(Compaction(Dataset("d"), GAPS_TABLE)).startswith("<Compaction of gaps into d: Commit(files=0")
