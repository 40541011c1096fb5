"""FindCoordinator: requests and responses."""

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v6 import FindCoordinatorRequest
from kio.schema.types import GroupId
from kio.static.primitive import i8

from examples.broker.errors import ApiError
from examples.broker.handlers.group_membership import find_coordinator
from examples.broker.metadata import BrokerRegistration
from examples.broker.protocol.apis import FIND_COORDINATOR
from examples.broker.protocol.codec import RequestContext

READERS, ELSEWHERE = GroupId("readers"), GroupId("led elsewhere")
CONTEXT = RequestContext(FIND_COORDINATOR, FIND_COORDINATOR.max_version, 1, "reader", "10.0.0.1")


class Directory:
    async def coordinator_of(self, group_id: str) -> BrokerRegistration:
        if group_id == ELSEWHERE:
            raise ApiError(ErrorCode.coordinator_not_available, "nobody leads it")
        return BrokerRegistration(2, "10.0.0.2", 9094)


async def test_each_group_gets_its_coordinator_or_an_error() -> None:
    request = FindCoordinatorRequest(coordinator_keys=(READERS, ELSEWHERE))
    found, missing = (await find_coordinator(Directory(), CONTEXT, request)).coordinators
    assert (found.key, found.node_id, found.host, found.port, found.error_code) == (
        READERS,
        2,
        "10.0.0.2",
        9094,
        ErrorCode.none,
    )
    assert (missing.key, missing.node_id, missing.error_code) == (
        ELSEWHERE,
        -1,
        ErrorCode.coordinator_not_available,
    )
    assert missing.error_message is not None


async def coordinator_error(key_type: int) -> ErrorCode:
    request = FindCoordinatorRequest(key_type=i8(key_type), coordinator_keys=("any",))
    (coordinator,) = (await find_coordinator(Directory(), CONTEXT, request)).coordinators
    return coordinator.error_code


async def test_share_groups_have_no_coordinator() -> None:
    assert await coordinator_error(2) is ErrorCode.invalid_request


async def test_a_transactional_producer_is_refused_for_good_with_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert await coordinator_error(1) is ErrorCode.transactional_id_authorization_failed
    assert "'reader' at 10.0.0.1: this broker serves no transactions" in caplog.text
