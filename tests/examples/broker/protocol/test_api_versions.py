"""The versions that ApiVersions advertises."""

import pytest
from kio.schema.api_versions.v4 import ApiVersionsRequest
from kio.schema.errors import ErrorCode

from examples.broker.protocol.apis import API_VERSIONS, APIS, PRODUCE
from examples.broker.protocol.codec import RequestContext
from examples.broker.protocol.server import api_versions


def client(name: str, version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


CONTEXT = RequestContext(API_VERSIONS, 4, 1, None, "here")


async def test_all_served_versions_are_advertised_and_older_ones_of_produce() -> None:
    response = await api_versions(APIS.values(), CONTEXT, None)
    advertised = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
    served = {api.key: (api.min_version, api.max_version) for api in APIS.values()}
    assert advertised == served | {PRODUCE.key: (0, PRODUCE.max_version)}


@pytest.mark.parametrize("request_", [client("a b"), client(""), client("-a"), client("good", "")])
async def test_a_client_has_a_name_and_a_version(request_: ApiVersionsRequest) -> None:
    response = await api_versions(APIS.values(), CONTEXT, request_)
    assert (response.error_code, response.api_keys) == (ErrorCode.invalid_request, ())
    old = RequestContext(API_VERSIONS, 2, 1, None, "here")
    assert (await api_versions(APIS.values(), old, request_)).error_code is ErrorCode.none
