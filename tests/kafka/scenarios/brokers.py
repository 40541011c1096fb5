"""The brokers of one cluster, which a scenario sends requests to, field by field."""

import socket
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, Protocol, Self

from kio.serial import entity_reader

from examples.broker.protocol.apis import (
    CREATE_TOPICS,
    DESCRIBE_GROUPS,
    FETCH,
    FIND_COORDINATOR,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
    Api,
)
from examples.broker.protocol.versions import request_class, response_class
from tests.examples.broker.live.live_cluster import PATIENCE, until
from tests.examples.broker.protocol.plain_messages import Plain, message, plain
from tests.examples.broker.protocol.wire_messages import request_frame, with_size
from tests.kafka.scenarios.answers import batches

BROKER_IDS: Final = (1, 2, 3)
CLOSED: Final = "the connection is closed"
CLIENT: Final = "scenario"


class RunningCluster(Protocol):
    """Three brokers, which are numbered from 1."""

    @property
    def bootstrap_servers(self) -> str: ...

    def kill(self, broker_id: int) -> None: ...

    def start(self, broker_id: int) -> None: ...


class Connection:
    """A connection to one broker. Answers come in the order of the requests."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, PATIENCE)
        self._asked: deque[tuple[Api, int]] = deque()
        self.is_open = True

    def send(self, api: Api, version: int | None = None, **values: Plain) -> None:
        version = api.max_version if version is None else version
        request = message(request_class(api, version), values)
        self.send_frame(api, version, request_frame(request, client_id=CLIENT))

    def send_frame(self, api: Api, version: int, frame: bytes) -> None:
        """Send a request as bytes. The answer is read in the version that is given here."""
        self._asked.append((api, version))
        with suppress(ConnectionError):
            self._socket.sendall(with_size(frame))

    def receive(self) -> Plain:
        """Return the next answer, or that the connection is closed."""
        api, version = self._asked.popleft()
        try:
            frame = self._exactly(int.from_bytes(self._exactly(4), "big"))
        except (EOFError, ConnectionError):
            self.close()
            return CLOSED
        response_type = response_class(api, version)
        _, start = entity_reader(response_type.__header_schema__)(frame, 0)
        response, size = entity_reader(response_type)(frame, start)
        assert start + size == len(frame)
        return plain(response)

    def ask(self, api: Api, version: int | None = None, **values: Plain) -> Plain:
        self.send(api, version, **values)
        return self.receive()

    def close(self) -> None:
        self.is_open = False
        self._socket.close()

    def _exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            data = self._socket.recv(size - len(received))
            if not data:
                raise EOFError
            received += data
        return bytes(received)


class Brokers:
    """The brokers of a cluster, and what most scenarios need of them.

    ``name`` is that of the scenario. Topics and groups have it, too, so that no scenario disturbs another.
    """

    def __init__(self, cluster: RunningCluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self._connections: dict[int, Connection] = {}
        self._resources = ExitStack()

    @classmethod
    @contextmanager
    def connected(cls, cluster: RunningCluster, name: str) -> Iterator[Self]:
        brokers = cls(cluster, name)
        with brokers._resources:
            yield brokers

    # Requests

    def connect(self, broker: int = 1) -> Connection:
        """Open one more connection to a broker."""
        connection = Connection(self._address(broker))
        self._resources.callback(connection.close)
        return connection

    def disconnect(self, broker: int) -> None:
        """Forget the connection to a broker that has died."""
        self._connections.pop(broker).close()

    def ask(self, api: Api, version: int | None = None, *, to: int = 1, **values: Plain) -> Plain:
        """Return a broker's answer to a request, in the newest version that we serve or in an older one."""
        if to not in self._connections or not self._connections[to].is_open:
            self._connections[to] = self.connect(to)
        return self._connections[to].ask(api, version, **values)

    # Topics

    def topic(
        self,
        suffix: str = "",
        *,
        replicas: Sequence[Sequence[int]] = ((1,),),
        configs: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic with the replicas of each partition, and wait until all its leaders serve it."""
        name = self.name + suffix
        created = self.ask(
            CREATE_TOPICS,
            topics=[
                {
                    "name": name,
                    "num_partitions": -1,
                    "replication_factor": -1,
                    "assignments": [
                        {"partition_index": index, "broker_ids": ids} for index, ids in enumerate(replicas)
                    ],
                    "configs": [{"name": key, "value": value} for key, value in (configs or {}).items()],
                }
            ],
        )
        assert created["topics"][0]["error_code"] == "none", created
        self.until_led(name)
        return name

    def until_led(self, topic: str, brokers: Sequence[int] = BROKER_IDS) -> None:
        """Wait until these brokers know the topic, and the leader of each partition serves it."""
        for broker in brokers:
            until(lambda broker=broker: self._is_served(topic, broker))  # type: ignore[misc]  # mypy#15459

    def _is_served(self, topic: str, broker: int) -> bool:
        described = self.described(topic, to=broker)
        return described["error_code"] == "none" and all(
            partition["leader_id"] > 0
            and self.offset(topic, -1, partition["partition_index"], to=partition["leader_id"])["error_code"]
            == "none"
            for partition in described["partitions"]
        )

    def described(self, topic: str, *, to: int = 1) -> Plain:
        """Return the metadata of one topic."""
        return self.ask(METADATA, to=to, topics=[{"name": topic}], allow_auto_topic_creation=False)["topics"][
            0
        ]

    def produce(
        self,
        topic: str,
        records: bytes | None,
        *,
        partition: int = 0,
        acks: int = -1,
        timeout: int = 10_000,
        to: int = 1,
        version: int | None = None,
        transactional_id: str | None = None,
    ) -> Plain:
        """Return the answer for one partition."""
        entry = {"index": partition, "records": records}
        answer = self.ask(
            PRODUCE,
            version,
            to=to,
            transactional_id=transactional_id,
            acks=acks,
            timeout=timeout,
            topic_data=[{"name": topic, "partition_data": [entry]}],
        )
        return answer if answer == CLOSED else answer["responses"][0]["partition_responses"][0]

    def fetch(
        self,
        topic: str,
        offset: int = 0,
        *,
        partition: int = 0,
        to: int = 1,
        version: int | None = None,
        leader_epoch: int | None = None,
        last_fetched_epoch: int | None = None,
        partition_max_bytes: int = 1 << 20,
        **values: Plain,
    ) -> Plain:
        """Return the answer for one partition, with its batches."""
        wanted = {
            "partition": partition,
            "fetch_offset": offset,
            "partition_max_bytes": partition_max_bytes,
        }
        if leader_epoch is not None:
            wanted["current_leader_epoch"] = leader_epoch
        if last_fetched_epoch is not None:
            wanted["last_fetched_epoch"] = last_fetched_epoch
        answer = self.ask(
            FETCH,
            version,
            to=to,
            topics=[{"topic": topic, "partitions": [wanted]}],
            **{"min_bytes": 1, "max_bytes": 1 << 20} | values,
        )
        if answer == CLOSED:
            return answer
        return read_batches(answer)["responses"][0]["partitions"][0]

    def offset(
        self,
        topic: str,
        timestamp: int,
        partition: int = 0,
        *,
        to: int = 1,
        version: int | None = None,
        leader_epoch: int | None = None,
        isolation_level: int | None = None,
    ) -> Plain:
        """Return the answer of ListOffsets for one partition."""
        wanted = {"partition_index": partition, "timestamp": timestamp}
        if leader_epoch is not None:
            wanted["current_leader_epoch"] = leader_epoch
        options = {} if isolation_level is None else {"isolation_level": isolation_level}
        answer = self.ask(
            LIST_OFFSETS,
            version,
            to=to,
            replica_id=-1,
            topics=[{"name": topic, "partitions": [wanted]}],
            **options,
        )
        return answer["topics"][0]["partitions"][0]

    # Groups

    def coordinator(self, group: str) -> int:
        """Return the coordinator of a group, once it has loaded the group."""
        found = until(lambda: self._found_coordinator(group))
        until(
            lambda: (
                self.ask(DESCRIBE_GROUPS, to=found, groups=[group])["groups"][0]["error_code"]
                not in ("not_coordinator", "coordinator_load_in_progress")
            )
        )
        return found

    def _found_coordinator(self, group: str) -> int:
        (found,) = self.ask(FIND_COORDINATOR, coordinator_keys=[group])["coordinators"]
        return int(found["node_id"]) if found["error_code"] == "none" else 0

    def _address(self, broker: int) -> tuple[str, int]:
        for server in self.cluster.bootstrap_servers.split(","):
            host, _, port = server.rpartition(":")
            try:
                connection = Connection((host, int(port)))
            except ConnectionError:
                continue
            answer = connection.ask(METADATA, topics=[])
            connection.close()
            if answer == CLOSED:
                continue
            for entry in answer["brokers"]:
                if entry["node_id"] == broker:
                    return entry["host"], entry["port"]
        raise ConnectionError(f"no broker knows broker {broker}")


def read_batches(answer: Plain) -> Plain:
    """Return the answer to a Fetch with batches in place of bytes."""
    for topic in answer["responses"]:
        for partition in topic["partitions"]:
            partition["records"] = batches(partition["records"])
    return answer
