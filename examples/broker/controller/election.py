"""Leader elections: pure functions from a partition's state and the live brokers to its next state."""

from collections.abc import Set
from enum import Enum

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import NO_LEADER, PartitionState


class ElectionType(Enum):
    """Elect the preferred leader if it is in sync, or any live replica; with the numbers of KIP-460."""

    PREFERRED = 0
    UNCLEAN = 1


def reelect(state: PartitionState, live: Set[int]) -> PartitionState:
    """Return the state after the live brokers changed; the same object when nothing changes for it.

    A replica on a broker that is not live leaves the in-sync replicas, except the last one, which has all
    committed records. If the leader is not live, the first replica that is live and in sync leads.
    """
    in_sync = tuple(replica for replica in state.in_sync if replica in live) or state.in_sync
    if in_sync != state.in_sync:
        state = state.with_in_sync(in_sync)
    if state.leader in live:
        return state
    leader = next((entry for entry in state.replicas if entry in in_sync and entry in live), NO_LEADER)
    return state if leader == state.leader else state.led_by(leader)


def elect(election: ElectionType, state: PartitionState, live: Set[int]) -> PartitionState:
    """Return the state with the leader that is elected.

    Raises ApiError ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE or ELIGIBLE_LEADERS_NOT_AVAILABLE.
    """
    return _elect_preferred(state, live) if election is ElectionType.PREFERRED else _elect_any(state, live)


def _elect_preferred(state: PartitionState, live: Set[int]) -> PartitionState:
    preferred = state.replicas[0]
    if state.leader == preferred:
        raise ApiError(ErrorCode.election_not_needed, f"broker {preferred}, the preferred leader, leads it")
    if preferred not in live or preferred not in state.in_sync:
        fault = "in sync" if preferred in live else "live"
        raise ApiError(
            ErrorCode.preferred_leader_not_available,
            f"broker {preferred}, the preferred leader, is not {fault}",
        )
    return state.led_by(preferred)


def _elect_any(state: PartitionState, live: Set[int]) -> PartitionState:
    if state.leader != NO_LEADER:
        raise ApiError(ErrorCode.election_not_needed, f"broker {state.leader} leads it")
    leader = next((replica for replica in state.replicas if replica in live), None)
    if leader is None:
        raise ApiError(
            ErrorCode.eligible_leaders_not_available, f"none of its replicas {list(state.replicas)} is live"
        )
    # Records that only the other replicas have are lost: the others are out of sync now.
    return state.led_by(leader).with_in_sync((leader,))
