"""The refusal of transactional producers."""

import logging

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.protocol.codec import RequestContext

logger = logging.getLogger(__name__)


def refused_transactions(context: RequestContext, transactional_id: str) -> ApiError:
    """Log that a producer asks for transactions, and return the error for it.

    librdkafka ends ``init_transactions`` at once on this error alone. On others, such as INVALID_REQUEST, it
    retries in silence until its timeout (rd_kafka_txn_handle_FindCoordinator).
    """
    message = f"this broker serves no transactions: produce without transactional.id {transactional_id!r}"
    logger.warning("refused %s: %s", context, message)
    return ApiError(ErrorCode.transactional_id_authorization_failed, message)
