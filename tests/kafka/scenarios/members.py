"""The members of a group, request by request."""

import struct
from collections.abc import Mapping, Sequence
from typing import Final, Self

from examples.broker.protocol.apis import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP
from tests.examples.broker.live.live_cluster import until
from tests.examples.broker.protocol.plain_messages import Plain
from tests.kafka.scenarios.brokers import Brokers, Connection

Protocols = Sequence[tuple[str, bytes]]


def subscription(topic: str) -> bytes:
    """Return a consumer's metadata. Kafka never answers a consumer whose metadata it cannot read."""
    return struct.pack(">hih", 0, 1, len(topic)) + topic.encode() + struct.pack(">i", -1)


RANGE: Final[Protocols] = (("range", subscription("topic")),)
SESSION_TIMEOUT: Final = 10_000


class Member:
    """One member of a group, with a connection of its own, so that its requests may wait."""

    def __init__(
        self,
        brokers: Brokers,
        group: str,
        *,
        instance_id: str | None = None,
        protocols: Protocols = RANGE,
        protocol_type: str = "consumer",
        version: int | None = None,
    ) -> None:
        self._connection: Connection = brokers.connect(brokers.coordinator(group))
        self._group = group
        self._instance_id = instance_id
        self._protocols = protocols
        self._protocol_type = protocol_type
        self._version = version
        self.member_id = ""
        self.generation_id = -1

    def send_join(self, **values: Plain) -> None:
        identity = {} if self._instance_id is None else {"group_instance_id": self._instance_id}
        protocols = [{"name": name, "metadata": metadata} for name, metadata in self._protocols]
        timeouts = {"session_timeout": SESSION_TIMEOUT}
        if self._version != 0:
            timeouts["rebalance_timeout"] = SESSION_TIMEOUT
        request: dict[str, Plain] = {
            "group_id": self._group,
            "member_id": self.member_id,
            "protocol_type": self._protocol_type,
            "protocols": protocols,
        }
        self._connection.send(JOIN_GROUP, self._version, **request | identity | timeouts | values)

    def joined(self) -> Plain:
        """Return the answer to ``send_join``."""
        answer = self._connection.receive()
        if answer["error_code"] in ("none", "member_id_required"):
            self.member_id = answer["member_id"]
            self.generation_id = answer["generation_id"]
        return answer

    def join(self, **values: Plain) -> Plain:
        """Send one JoinGroup and return its answer."""
        self.send_join(**values)
        return self.joined()

    def enter(self) -> Plain:
        """Join as a new client does, with a second request when the first one only brings a member id."""
        answer = self.join()
        return self.join() if answer["error_code"] == "member_id_required" else answer

    def send_sync(self, assignments: Mapping[str, bytes] | None = None, **values: Plain) -> None:
        request: dict[str, Plain] = {
            "group_id": self._group,
            "generation_id": self.generation_id,
            "member_id": self.member_id,
            "assignments": [
                {"member_id": member, "assignment": assignment}
                for member, assignment in (assignments or {}).items()
            ],
        }
        names = {"protocol_type": self._protocol_type, "protocol_name": self._protocols[0][0]}
        identity = {} if self._instance_id is None else {"group_instance_id": self._instance_id}
        self._connection.send(SYNC_GROUP, **request | names | identity | values)

    def received(self) -> Plain:
        return self._connection.receive()

    def sync(self, assignments: Mapping[str, bytes] | None = None, **values: Plain) -> Plain:
        self.send_sync(assignments, **values)
        return self.received()

    def heartbeat(self, **values: Plain) -> Plain:
        request: dict[str, Plain] = {
            "group_id": self._group,
            "generation_id": self.generation_id,
            "member_id": self.member_id,
            "group_instance_id": self._instance_id,
        }
        return self._connection.ask(HEARTBEAT, **request | values)["error_code"]

    def leave(self, *, by_instance_id: bool = False) -> Plain:
        entry = {
            "member_id": "" if by_instance_id else self.member_id,
            "group_instance_id": self._instance_id,
        }
        return self._connection.ask(LEAVE_GROUP, group_id=self._group, members=[entry])

    def until_rebalance(self) -> None:
        """Send heartbeats until the answer is that the group rebalances."""
        until(lambda: self.heartbeat() == "rebalance_in_progress")

    @classmethod
    def alone(cls, brokers: Brokers, group: str, **options: Plain) -> Self:
        """Return the only member of a stable group."""
        member = cls(brokers, group, **options)
        assert member.enter()["error_code"] == "none"
        assert member.sync({member.member_id: b"assigned"})["error_code"] == "none"
        return member

    @classmethod
    def pair(cls, brokers: Brokers, group: str, **options: Plain) -> tuple[Self, Self]:
        """Return the leader and the other member of a stable group."""
        leader, other = cls.alone(brokers, group, **options), cls(brokers, group, **options)
        assert other.join()["error_code"] == "member_id_required"
        other.send_join()
        leader.until_rebalance()
        leader.join()
        other.joined()
        other.send_sync()
        leader.sync({leader.member_id: b"first", other.member_id: b"second"})
        assert other.received()["error_code"] == "none"
        return leader, other
