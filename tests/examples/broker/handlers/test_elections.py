"""ElectLeaders: requests and responses."""

from kio.schema.elect_leaders.v2 import ElectLeadersRequest, ElectLeadersResponse
from kio.schema.elect_leaders.v2.request import TopicPartitions
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32

from examples.broker.controller.new_topic import NewTopic
from examples.broker.handlers.topic_admin import elect_leaders
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import CONTEXT, ControlledCluster

TWO_TOPICS = (NewTopic("a", assignment=((0,), (1,))), NewTopic("b", assignment=((0, 1), (1, 0))))


async def elect(
    cluster: ControlledCluster, *asked: tuple[str, tuple[int, ...]], election: int = 1
) -> ElectLeadersResponse:
    """Elect leaders, unclean by default; without partitions, for all of them."""
    partitions = tuple(
        TopicPartitions(topic=TopicName(topic), partitions=tuple(i32(index) for index in indexes))
        for topic, indexes in asked
    )
    request = ElectLeadersRequest(election_type=i8(election), topic_partitions=partitions or None)
    return await elect_leaders(cluster.admins[2], CONTEXT, request)


def errors(response: ElectLeadersResponse) -> dict[tuple[str, int], ErrorCode]:
    assert response.error_code is ErrorCode.none
    results = response.replica_election_results
    assert len({result.topic for result in results}) == len(results)
    return {
        (result.topic, entry.partition_id): entry.error_code
        for result in results
        for entry in result.partition_result
    }


async def test_results_are_grouped_by_topic(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[2].create(TWO_TOPICS, 5)
        cluster.controller.fence(1)
        cluster.controller.fence(0)
        cluster.controller.heartbeat(1)
        response = await elect(cluster, ("b", (0, 1, 2)), ("a", (1, 0, 2)))
        assert errors(response) == {
            ("a", 0): ErrorCode.eligible_leaders_not_available,
            ("a", 1): ErrorCode.election_not_needed,
            ("a", 2): ErrorCode.unknown_topic_or_partition,
            ("b", 0): ErrorCode.none,
            ("b", 1): ErrorCode.none,
            ("b", 2): ErrorCode.unknown_topic_or_partition,
        }
        (of_b,) = (result for result in response.replica_election_results if result.topic == "b")
        messages = {int(entry.partition_id): entry.error_message for entry in of_b.partition_result}
        assert messages[0] is None
        assert "b-2" in str(messages[2])
        assert cluster.partition(TopicPartition("b", 0)).leader == 1


async def test_without_named_partitions_all_that_need_it_are_elected(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        await cluster.admins[2].create(TWO_TOPICS, 5)
        cluster.controller.fence(0)
        assert errors(await elect(cluster, election=0)) == {
            ("a", 0): ErrorCode.preferred_leader_not_available,
            ("b", 0): ErrorCode.preferred_leader_not_available,
        }


async def test_an_unknown_election_type_is_refused(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        response = await elect(cluster, election=2)
        assert (response.error_code, response.replica_election_results) == (ErrorCode.invalid_request, ())
