"""The metadata under any order of events of brokers, leaders, clients and the clock."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from examples.broker.controller.controller import Controller
from examples.broker.controller.election import ElectionType
from examples.broker.controller.metadata_cache import MetadataCache
from examples.broker.controller.new_topic import NewTopic
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import NO_LEADER, MetadataImage, PartitionState
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import ManualClock
from tests.examples.broker.controller.controlled_cluster import registration

SESSION = 9
BROKERS = st.integers(0, 3)
NAMES = st.sampled_from("ab")


class ControllerMachine(RuleBasedStateMachine):
    """Two brokers' caches apply images now and then. ``mirrors`` are built from their deltas alone."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.controller = Controller(
            ClusterDefaults(broker_session_timeout=SESSION),
            sessions=self.clock.purgatory("broker session"),
            images=self.clock.purgatory("image"),
        )
        self.heard_of: dict[int, float] = {}
        self.last = self.controller.image
        self.caches = [MetadataCache(0), MetadataCache(1)]
        self.mirrors: list[dict[TopicPartition, PartitionState]] = [{}, {}]

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    @property
    def live(self) -> set[int]:
        """Return the brokers that the model expects to be live."""
        return {broker_id for broker_id, at in self.heard_of.items() if self.clock.time() < at + SESSION}

    @rule(broker_id=BROKERS)
    def register(self, broker_id: int) -> None:
        self.controller.register(registration(broker_id))
        self.heard_of[broker_id] = self.clock.time()

    @precondition(lambda self: self.image.brokers)
    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        broker_id = data.draw(st.sampled_from(sorted(self.image.brokers)))
        self.controller.heartbeat(broker_id)
        self.heard_of[broker_id] = self.clock.time()

    @rule(seconds=st.integers(1, SESSION))
    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(broker_id=BROKERS)
    def leave(self, broker_id: int) -> None:
        self.controller.fence(broker_id)
        self.heard_of.pop(broker_id, None)

    @rule(name=NAMES, partitions=st.integers(1, 3), factor=st.integers(1, 3))
    def create(self, name: str, partitions: int, factor: int) -> None:
        exists, enough = name in self.image.topics, self.live and factor <= len(self.image.brokers)
        try:
            self.controller.create(NewTopic(name, partitions, factor))
        except ApiError:
            assert exists or not enough
        else:
            assert enough
            assert not exists

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        exists = name in self.image.topics
        try:
            self.controller.delete_topic(name)
        except ApiError:
            assert not exists
        else:
            assert exists

    @precondition(lambda self: self.image.topics)
    @rule(data=st.data(), wrong=st.sampled_from(["", "leader", "leader epoch", "partition epoch"]))
    def alter(self, data: st.DataObject, wrong: str) -> None:
        topic_partition, state = data.draw(st.sampled_from(list(self.image.partitions())))
        in_sync = data.draw(st.lists(st.sampled_from(state.replicas), unique=True))
        wanted = replace(
            state,
            in_sync=tuple(in_sync),
            leader_epoch=state.leader_epoch - (wrong == "leader epoch"),
            partition_epoch=state.partition_epoch - (wrong == "partition epoch"),
        )
        asking = data.draw(BROKERS) if wrong == "leader" else state.leader
        valid = (
            asking == state.leader != NO_LEADER
            and not wrong.endswith("epoch")
            and asking in in_sync
            and self.live.issuperset(in_sync)
        )
        try:
            altered = self.controller.alter_partition(asking, topic_partition, wanted)
        except ApiError:
            assert not valid
        else:
            assert valid
            assert set(altered.in_sync) == set(in_sync)

    @rule(election=st.sampled_from(ElectionType))
    def elect(self, election: ElectionType) -> None:
        before = dict(self.image.partitions())
        asked = [*before, TopicPartition("missing", 0)]
        for topic_partition, result in self.controller.elect_leaders(election, asked).items():
            if isinstance(result, PartitionState):
                assert result == self.image.partition(topic_partition)
                assert result.leader != before[topic_partition].leader
            else:
                assert self.image.partition(topic_partition) == before.get(topic_partition)
                assert (result.code is ErrorCode.unknown_topic_or_partition) == (
                    topic_partition not in before
                )

    @rule(broker=st.integers(0, 1))
    def take_over(self, broker: int) -> None:
        delta = self.caches[broker].update(self.image)
        mirror = self.mirrors[broker]
        for topic_partition in delta.deleted:
            del mirror[topic_partition]
        for topic_partition, state in delta.changed.items():
            assert mirror.get(topic_partition) != state
            mirror[topic_partition] = state
        assert mirror == dict(self.image.partitions())

    @invariant()
    def whoever_was_heard_of_in_time_is_live_and_nobody_else(self) -> None:
        assert {key for key, broker in self.image.brokers.items() if not broker.fenced} == self.live
        assert self.controller.session_purgatory.statistics().pending == len(self.live)

    @invariant()
    def a_leader_is_live_and_in_sync_and_there_is_one_wherever_there_can_be(self) -> None:
        for _, state in self.image.partitions():
            assert state.in_sync
            assert set(state.in_sync) <= set(state.replicas)
            if state.leader == NO_LEADER:
                assert self.live.isdisjoint(state.in_sync)
            else:
                assert state.leader in state.in_sync
                assert state.leader in self.live

    @invariant()
    def the_fenced_are_in_sync_only_as_the_last(self) -> None:
        for _, state in self.image.partitions():
            assert len(state.in_sync) == 1 or self.live.issuperset(state.in_sync)

    @invariant()
    def epochs_only_grow_and_with_every_change(self) -> None:
        assert (self.image.version > self.last.version) == (self.image is not self.last)
        for name, topic in self.image.topics.items():
            before = self.last.topics.get(name)
            if before is None or before.topic_id != topic.topic_id:
                continue
            for old, new in zip(before.partitions, topic.partitions, strict=True):
                assert new.replicas == old.replicas
                assert (new.partition_epoch > old.partition_epoch) == (new != old)
                assert new.leader_epoch >= old.leader_epoch
                assert new.leader_epoch > old.leader_epoch or new.leader == old.leader
        self.last = self.image


TestMetadataUnderAnyOrder = ControllerMachine.TestCase
TestMetadataUnderAnyOrder.settings = settings(stateful_step_count=40)
