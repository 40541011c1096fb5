"""FindCoordinator: the broker that coordinates a group."""

from typing import Final, Protocol

from kio.schema.find_coordinator.v6 import FindCoordinatorRequest, FindCoordinatorResponse
from kio.schema.find_coordinator.v6.response import Coordinator
from kio.schema.types import BrokerId
from kio.static.primitive import i32

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.handlers.transactions import refused_transactions
from examples.broker.metadata import BrokerRegistration
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext

GROUP: Final = 0
TRANSACTION: Final = 1


class CoordinatorDirectory(Protocol):
    """The lookup of a group's coordinator."""

    async def coordinator_of(self, group_id: str) -> BrokerRegistration:
        """Return the group's coordinator. Raises ApiError COORDINATOR_NOT_AVAILABLE while there is none."""
        raise NotImplementedError


async def find_coordinator(
    directory: CoordinatorDirectory, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Return the coordinator of each group. Nothing else has one.

    The error is TRANSACTIONAL_ID_AUTHORIZATION_FAILED for a transaction, and INVALID_REQUEST for other keys.
    """
    coordinators = [
        await _coordinator(directory, context, request.key_type, key) for key in request.coordinator_keys
    ]
    return FindCoordinatorResponse(throttle_time=NO_THROTTLE, coordinators=tuple(coordinators))


async def _coordinator(
    directory: CoordinatorDirectory, context: RequestContext, key_type: int, key: str
) -> Coordinator:
    try:
        if key_type == TRANSACTION:
            raise refused_transactions(context, key)
        if key_type != GROUP:
            raise ApiError(
                ErrorCode.invalid_request,
                f"key type {key_type} has no coordinator",
            )
        broker = await directory.coordinator_of(key)
    except ApiError as error:
        return Coordinator(
            key=key,
            node_id=BrokerId(-1),
            host="",
            port=i32(-1),
            error_code=error.code,
            error_message=str(error),
        )
    return Coordinator(
        key=key,
        node_id=BrokerId(broker.broker_id),
        host=broker.host,
        port=i32(broker.port),
        error_code=ErrorCode.none,
        error_message="",
    )
