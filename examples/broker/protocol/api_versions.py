"""The answer to ApiVersions: the APIs that this broker serves, and their versions."""

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from kio.schema.api_versions.v4 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.api_versions.v4.response import ApiVersion
from kio.static.primitive import i16, i32Timedelta

from examples.broker.errors import ErrorCode
from examples.broker.protocol.apis import PRODUCE, Api
from examples.broker.protocol.codec import RequestContext

# Lower than the versions that are served. Many versions of librdkafka compress only if the broker claims to
# serve the first version of Produce, although they do not use it (KAFKA-18659, librdkafka#4956).
ADVERTISED_MIN_VERSIONS: Final = {PRODUCE.key: 0}

NAMES_SOFTWARE: Final = 3
"""From this version of ApiVersions on, clients give their name and version."""

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


async def api_versions(
    served: Iterable[Api[Any, Any]], context: RequestContext, request: ApiVersionsRequest | None
) -> ApiVersionsResponse:
    """Return the APIs that are served.

    The error is UNSUPPORTED_VERSION for an unknown version (None), and INVALID_REQUEST, without APIs, for a
    client whose name or version is none (KIP-511).
    """
    error = ErrorCode.none
    if request is None:
        error = ErrorCode.unsupported_version
    elif context.version >= NAMES_SOFTWARE and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        error, served = ErrorCode.invalid_request, ()
    return ApiVersionsResponse(
        error_code=error,
        api_keys=tuple(
            ApiVersion(
                api_key=i16(api.key),
                min_version=i16(ADVERTISED_MIN_VERSIONS.get(api.key, api.min_version)),
                max_version=i16(api.max_version),
            )
            for api in served
        ),
        throttle_time=i32Timedelta.parse(timedelta(0)),
    )
