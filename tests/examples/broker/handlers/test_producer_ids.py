"""InitProducerId: requests and responses."""

from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v4 import InitProducerIdRequest, InitProducerIdResponse
from kio.schema.types import ProducerId, TransactionalId
from kio.static.primitive import i16, i32Timedelta

from examples.broker.controller.controller import Controller
from examples.broker.handlers.writes import init_producer_id
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import CONTEXT, ControlledCluster


async def ask(
    controller: Controller,
    transactional_id: str | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> InitProducerIdResponse:
    request = InitProducerIdRequest(
        transactional_id=None if transactional_id is None else TransactionalId(transactional_id),
        transaction_timeout=i32Timedelta.parse(timedelta(minutes=1)),
        producer_id=ProducerId(producer_id),
        producer_epoch=i16(producer_epoch),
    )
    return await init_producer_id(controller, CONTEXT, request)


async def test_each_producer_gets_an_id_of_its_own_in_epoch_0(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        controller = cluster.controller
        responses = [await ask(controller), await ask(controller), await ask(controller, None, 0, 0)]
        assert [(entry.error_code, entry.producer_epoch) for entry in responses] == [(ErrorCode.none, 0)] * 3
        assert len({entry.producer_id for entry in responses}) == 3


@pytest.mark.parametrize("asked", [(4, -1), (-1, 1)])
async def test_an_incomplete_producer_id_is_refused(
    virtual_time: VirtualTimeLoop, asked: tuple[int, int]
) -> None:
    async with ControlledCluster.running() as cluster:
        response = await ask(cluster.controller, None, *asked)
        assert response.error_code is ErrorCode.invalid_request
        assert (response.producer_id, response.producer_epoch) == (-1, -1)


@pytest.mark.parametrize("transactional_id", ["", "my-transactions"])
async def test_a_transactional_producer_is_refused_for_good_with_a_line_in_the_log(
    virtual_time: VirtualTimeLoop, caplog: pytest.LogCaptureFixture, transactional_id: str
) -> None:
    async with ControlledCluster.running() as cluster:
        response = await ask(cluster.controller, transactional_id, 4, 1)
        assert response.error_code is ErrorCode.transactional_id_authorization_failed
        assert (response.producer_id, response.producer_epoch) == (-1, -1)
    assert f"serves no transactions: produce without transactional.id {transactional_id!r}" in caplog.text
