"""Leader epochs against a naive model: one epoch for every offset."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from examples.broker.storage.leader_epochs import UNKNOWN_EPOCH_END, EpochEndOffset, LeaderEpochs


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    found = LeaderEpochs()
    for epoch, start in entries:
        found.assign(epoch, start)
    return found


@pytest.mark.parametrize(
    ("epoch", "end"),
    [
        (2, EpochEndOffset(2, 30)),
        (5, EpochEndOffset(5, 50)),
        (4, EpochEndOffset(2, 30)),
        (1, EpochEndOffset(1, 10)),
        (6, UNKNOWN_EPOCH_END),
        (-1, UNKNOWN_EPOCH_END),
    ],
    ids=["known", "latest", "between", "older than all", "newer than all", "none"],
)
def test_the_end_of_an_epoch_is_known_as_far_as_the_log_tells(epoch: int, end: EpochEndOffset) -> None:
    assert epochs((2, 10), (5, 30)).end_offset_for(epoch, 50) == end
    assert epochs().end_offset_for(epoch, 50) == UNKNOWN_EPOCH_END


def test_epochs_without_records_and_older_ones_are_not_kept() -> None:
    assert epochs((1, 0), (2, 10), (3, 10), (2, 20), (3, 30)).entries() == [(1, 0), (3, 10)]


class LeaderEpochsMachine(RuleBasedStateMachine):
    """``records[i]`` is the epoch of the record at offset i. Records below ``start`` are deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.epochs = LeaderEpochs()
        self.records: list[int] = []
        self.start = 0
        self.latest = -1

    @property
    def kept(self) -> list[int]:
        return self.records[self.start :]

    @rule(step=st.integers(0, 2), count=st.integers(1, 4))
    def append(self, step: int, count: int) -> None:
        self.latest = max(self.latest + step, 0)
        self.epochs.assign(self.latest, len(self.records))
        self.records += [self.latest] * count

    @rule(data=st.data())
    def truncate_from_end(self, data: st.DataObject) -> None:
        end = data.draw(st.integers(self.start, len(self.records)))
        del self.records[end:]
        self.epochs.truncate_from_end(end)
        self.latest = self.epochs.latest
        assert not self.kept or self.latest == self.kept[-1]

    @rule(data=st.data())
    def truncate_from_start(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, len(self.records)))
        self.epochs.truncate_from_start(self.start)

    @rule(epoch=st.integers(0, 12))
    def ask_for_an_end(self, epoch: int) -> None:
        found = self.epochs.end_offset_for(epoch, len(self.records))
        if not self.kept or epoch > self.kept[-1]:
            return
        older = [at for at, other in enumerate(self.records) if at >= self.start and other <= epoch]
        if older:
            assert found == EpochEndOffset(self.records[older[-1]], older[-1] + 1)
        else:
            assert found == EpochEndOffset(epoch, self.start)

    @invariant()
    def every_record_has_its_epoch(self) -> None:
        for offset in range(self.start, len(self.records)):
            assert self.epochs.epoch_at(offset) == self.records[offset]

    @invariant()
    def epochs_and_their_starts_grow(self) -> None:
        entries = self.epochs.entries()
        assert entries == sorted(set(entries))
        assert len({start for _, start in entries}) == len(entries)
        assert self.epochs.latest == (entries[-1][0] if entries else -1)


TestLeaderEpochsAgainstAList = LeaderEpochsMachine.TestCase
TestLeaderEpochsAgainstAList.settings = settings(stateful_step_count=30)
