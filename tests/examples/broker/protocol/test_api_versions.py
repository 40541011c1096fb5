"""The versions that ApiVersions advertises."""

from examples.broker.protocol.api_versions import api_versions
from examples.broker.protocol.apis import API_VERSIONS, APIS, PRODUCE
from examples.broker.protocol.codec import RequestContext

CONTEXT = RequestContext(API_VERSIONS, 4, 1, None, "here")


async def test_all_served_versions_are_advertised_and_older_ones_of_produce() -> None:
    response = await api_versions(APIS.values(), CONTEXT, None)
    advertised = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
    served = {api.key: (api.min_version, api.max_version) for api in APIS.values()}
    assert advertised == served | {PRODUCE.key: (0, PRODUCE.max_version)}
