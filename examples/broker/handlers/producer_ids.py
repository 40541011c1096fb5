"""InitProducerId: the producer id of an idempotent producer."""

from kio.schema.init_producer_id.v4 import InitProducerIdRequest, InitProducerIdResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i16

from examples.broker.controller.controller import Controller
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.handlers.transactions import refused_transactions
from examples.broker.protocol.apis import NO_THROTTLE
from examples.broker.protocol.codec import RequestContext

NO_ID, NO_EPOCH = -1, -1


async def init_producer_id(
    controller: Controller, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """Return a new producer id in epoch 0.

    The error is TRANSACTIONAL_ID_AUTHORIZATION_FAILED for a transactional producer, and INVALID_REQUEST for
    an epoch without an id or the reverse.

    A producer that has an id and asks for its next epoch (KIP-360) gets a new id, too. Kafka does the same
    for a producer without transactions, since nothing is fenced by its epochs.
    """
    try:
        if request.transactional_id is not None:
            raise refused_transactions(context, request.transactional_id)
        if (request.producer_id == NO_ID) != (request.producer_epoch == NO_EPOCH):
            raise ApiError(ErrorCode.invalid_request, "a producer epoch belongs to a producer id")
        return _response(ErrorCode.none, controller.next_producer_id(), 0)
    except ApiError as error:
        return _response(error.code, NO_ID, NO_EPOCH)


def _response(error: ErrorCode, producer_id: int, epoch: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time=NO_THROTTLE,
        error_code=error,
        producer_id=ProducerId(producer_id),
        producer_epoch=i16(epoch),
    )
