"""Requests to the handlers of a broker, as plain values and as the bytes of the protocol."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from examples.broker.controller.cluster_admin import ClusterAdmin
from examples.broker.controller.metadata_cache import MetadataCache
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.handlers.logs import describe_log_dirs, describe_producers
from examples.broker.handlers.reads import list_offsets, offset_for_leader_epoch
from examples.broker.handlers.writes import delete_records, produce
from examples.broker.metadata import PartitionState
from examples.broker.node.routes import routes
from examples.broker.protocol import apis
from examples.broker.protocol.apis import Api, RequestContext
from examples.broker.protocol.codec import decode_response, encode_response
from examples.broker.protocol.connection import Handler
from examples.broker.replication.replica_manager import ReplicaManager
from tests.examples.broker.leader_broker import image_of
from tests.examples.broker.protocol.plain_messages import Plain, message, plain

Part = ReplicaManager | GroupCoordinator | ClusterAdmin

_SIZE: Final = 4
# What a group commits offsets for: a topic with two partitions.
_CACHE: Final = MetadataCache(0)
_CACHE.update(replace(image_of([PartitionState((0,), (0,), leader=0)] * 2), version=1))
_ABSENT: Final[Any] = SimpleNamespace(cache=_CACHE, controller=None, partitions=SimpleNamespace())


def served(part: Part) -> Mapping[int, Handler]:
    """Return the handlers that work on one part of a broker."""
    if isinstance(part, ReplicaManager):
        # All but Fetch, which works on the sessions of the replica manager.
        handlers: Mapping[Api, Callable[..., Awaitable[Any]]] = {
            apis.PRODUCE: produce,
            apis.LIST_OFFSETS: list_offsets,
            apis.DELETE_RECORDS: delete_records,
            apis.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch,
            apis.DESCRIBE_LOG_DIRS: describe_log_dirs,
            apis.DESCRIBE_PRODUCERS: describe_producers,
        }
        return {api.key: partial(handler, part) for api, handler in handlers.items()}
    if isinstance(part, GroupCoordinator):
        return routes(_ABSENT, part, _ABSENT)
    return routes(_ABSENT, _ABSENT, part)


async def ask(part: Part, api: Api, *, version: int | None = None, **values: Plain) -> Plain:
    """Return the answer to a request of the newest version, from a client with this version."""
    newest = RequestContext(api, api.max_version, 1, "reader", "10.0.0.1")
    context = newest if version is None else replace(newest, version=version)
    response = await served(part)[api.key](context, message(api.request, values))
    return plain(decode_response(api, encode_response(newest, response)[_SIZE:])[1])
