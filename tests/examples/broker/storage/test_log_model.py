"""The log against a naive list of batches."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from examples.broker.storage.log import PartitionLog
from examples.broker.storage.record_batch import RecordBatch

SEGMENT_BYTES = 20
UNLIMITED = 1_000_000


class LogMachine(RuleBasedStateMachine):
    """``batches`` has all batches except truncated ones. Those below ``start`` may be deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.log = PartitionLog(SEGMENT_BYTES)
        self.batches: list[RecordBatch] = []
        self.start = 0
        self.end = 0
        self.appended = 0

    @rule(records=st.integers(1, 4), size=st.integers(1, 30))
    def append(self, records: int, size: int) -> None:
        self.appended += 1
        batch = RecordBatch(records, bytes([self.appended % 256]) * size)
        assert self.log.append_as_leader(batch) == self.end
        stored = batch.at(self.end, 0)
        self.batches.append(stored)
        self.end = stored.next_offset

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end + 3))
        self.log.truncate_to(offset)
        cut = [batch for batch in self.batches if batch.next_offset > offset]
        if cut:
            self.batches = self.batches[: -len(cut)]
            self.end = cut[0].base_offset
            self.start = min(self.start, self.end)

    @rule(data=st.data())
    def move_start(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.increment_log_start_offset(self.start)

    @rule(data=st.data(), max_bytes=st.integers(0, 100), min_one_batch=st.booleans())
    def read(self, data: st.DataObject, max_bytes: int, min_one_batch: bool) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        bound = data.draw(st.sampled_from([self.end, *(b.base_offset for b in self.batches)]))
        if bound < self.start:
            return
        read = self.log.read(offset, max_bytes, bound, min_one_batch=min_one_batch)
        readable = [b for b in self.batches if b.next_offset > offset and b.next_offset <= bound]
        assert list(read) == readable[: len(read)]
        size = sum(batch.size_in_bytes for batch in read)
        assert size <= max_bytes or (min_one_batch and len(read) == 1)
        if readable and (min_one_batch or readable[0].size_in_bytes <= max_bytes):
            assert read

    @rule(data=st.data())
    def count_bytes_between(self, data: st.DataObject) -> None:
        first, last = (data.draw(st.integers(self.start, self.end)) for _ in range(2))
        below = [sum(b.size_in_bytes for b in self.batches if b.next_offset <= at) for at in (first, last)]
        assert self.log.bytes_between(first, last) == below[1] - below[0]

    @invariant()
    def the_log_has_the_models_offsets(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)

    @invariant()
    def reading_on_from_the_start_gives_every_batch_once(self) -> None:
        found: list[RecordBatch] = []
        offset = self.start
        while batches := self.log.read(offset, UNLIMITED, self.end):
            found += batches
            offset = batches[-1].next_offset
        assert found == [batch for batch in self.batches if batch.next_offset > self.start]


TestLogAgainstAList = LogMachine.TestCase
TestLogAgainstAList.settings = settings(stateful_step_count=30)
