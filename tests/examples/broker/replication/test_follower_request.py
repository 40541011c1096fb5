"""What a follower asks for, and what its leader knows of it."""

from hypothesis import given
from hypothesis import strategies as st

from examples.broker.replication.fetch_sessions import FetchSession
from examples.broker.replication.follower_request import (
    NO_SESSION,
    FetchSessionHandler,
    FollowerRequest,
    epoch_after,
)
from examples.broker.replication.requests import PartitionFetch
from examples.broker.topic_partition import TopicPartition


def test_session_epochs_start_over_at_1() -> None:
    assert [epoch_after(0), epoch_after(2**31 - 1)] == [1, 1]


wanted = st.dictionaries(
    st.sampled_from([TopicPartition("t", index) for index in range(4)]),
    st.builds(PartitionFetch, st.integers(0, 3)),
)


@given(st.lists(st.tuples(wanted, st.booleans()), min_size=1))
def test_the_leader_always_fetches_what_the_follower_wants(
    requests: list[tuple[dict[TopicPartition, PartitionFetch], bool]],
) -> None:
    """For any sequence of wanted partitions, with sessions that the leader may decline."""
    followed, request = FetchSessionHandler(), FollowerRequest()
    session = FetchSession(7, 1, {}, now=0)
    for wanted_now, declined in requests:
        for topic_partition in set(request) - set(wanted_now):
            request.leave_out(topic_partition)
        for topic_partition, fetch in wanted_now.items():
            request.want(topic_partition, fetch)
        epoch = followed.epoch
        changed, forgotten = followed.next_request(request)
        if epoch == 0:
            session = FetchSession(7, 1, changed, now=0)
        else:
            session.update(epoch, changed, forgotten)
        assert session.partitions == request == wanted_now
        followed.handle_response(NO_SESSION if declined else session.session_id)
