"""Each documented way to connect to NATS, and what entering a relay says when one of them fails."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from purgatory.relay.transports.nats import NatsTransport
from tests.free_ports import free_ports
from tests.relay.live.nats_servers import NatsServer
from tests.relay.live.pairs import SHORT, Served, process_on, signals_go_over, until
from tests.relay.live.servers import self_signed
from tests.relay.processes import State

pytestmark = pytest.mark.slow

TLS = {"cert_file": "certificate.pem", "key_file": "key.pem"}
RIGHTS = {"publish": "purgatory.>", "subscribe": "purgatory.>"}


def server_with_a_user(rights: dict[str, str]) -> NatsServer:
    """A server that knows the user relay, whose password is secret. What is no right is denied."""
    permissions = {name: rights.get(name, {"deny": ">"}) for name in RIGHTS}
    user = {"user": "relay", "password": "secret", "permissions": permissions}
    return NatsServer(accounts={"app": {"users": [user]}}, no_auth_user=None)


def url_with_a_user(server: NatsServer) -> str:
    return server.url.replace("//", "//relay:secret@")


async def test_over_a_url(nats_server: NatsServer) -> None:
    await signals_go_over(NatsTransport(nats_server.url), NatsTransport(nats_server.url))


async def test_over_the_first_of_several_urls_that_answers(nats_server: NatsServer) -> None:
    urls = [f"nats://127.0.0.1:{free_ports(1)}", nats_server.url]
    await signals_go_over(NatsTransport(urls), NatsTransport(urls))


async def test_as_a_user_in_the_url_who_has_the_documented_rights_and_no_others() -> None:
    with server_with_a_user(RIGHTS) as server:
        url = url_with_a_user(server)
        await signals_go_over(NatsTransport(url), NatsTransport(url))


@pytest.mark.parametrize("userinfo", ["re%2Flay:p%40s%2Fs%3A", "re%2Flay"], ids=["password", "token"])
async def test_special_characters_of_the_url_are_decoded(userinfo: str) -> None:
    user = {"user": "re/lay", "password": "p@s/s:"} if ":" in userinfo else {"token": "re/lay"}
    with NatsServer(accounts={}, no_auth_user=None, authorization=user) as server:
        url = server.url.replace("//", f"//{userinfo}@")
        await signals_go_over(NatsTransport(url), NatsTransport(url.removeprefix("nats://")))


async def test_with_a_user_or_a_token_in_the_options() -> None:
    with server_with_a_user(RIGHTS) as server:
        options = {"user": "relay", "password": "secret"}
        await signals_go_over(NatsTransport(server.url, **options), NatsTransport(server.url, **options))
    with NatsServer(accounts={}, no_auth_user=None, authorization={"token": "secret"}) as server:
        transports = [NatsTransport(server.url, token="secret") for _ in range(2)]
        await signals_go_over(*transports)


@pytest.mark.parametrize("first", [False, True], ids=["when the server asks", "from the first byte"])
async def test_over_tls(first: bool) -> None:
    server = NatsServer(tls={**TLS, "handshake_first": first})
    context = ssl.create_default_context(cafile=self_signed(server.directory))
    with server:
        url = server.url.replace("nats:", "tls:")
        transports = [NatsTransport(url, tls=context, tls_handshake_first=first) for _ in range(2)]
        await signals_go_over(*transports)


@pytest.mark.parametrize("right", RIGHTS)
async def test_a_user_of_nats_who_lacks_a_right_is_refused_on_entering(right: str) -> None:
    rights = {name: subject for name, subject in RIGHTS.items() if name != right}
    words = f"violation for {right[:6]}.*: .* needs the rights to publish and to subscribe to purgatory.>"
    with server_with_a_user(rights) as server, pytest.raises(PermissionError, match=words):
        await process_on(Served(lambda: NatsTransport(url_with_a_user(server))), State()).__aenter__()


async def test_a_relay_that_loses_the_right_to_publish_is_not_connected_and_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with server_with_a_user(RIGHTS) as server:
        served = Served(lambda: NatsTransport(url_with_a_user(server)))
        async with process_on(served, State(), SHORT) as process:
            (user,) = server.settings["accounts"]["app"]["users"]
            user["permissions"] = {"publish": {"deny": ">"}, "subscribe": ">"}
            server.reload()
            await until(lambda: not process.relay.statistics().connected)
            await until(lambda: "to publish and to subscribe to purgatory.>" in caplog.text)
            user["permissions"] = RIGHTS
            server.reload()
            await until(lambda: process.relay.statistics().connected)


REFUSALS: dict[str, tuple[dict[str, Any], str, str]] = {
    "a wrong password": ({}, "nats://relay:wrong@", "Authorization Violation|Connection reset"),
    "no encryption": ({}, "tls://", "does not ask for TLS"),
    "an unknown certificate": ({"tls": TLS}, "nats://", "certificate verify failed"),
}


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_entering_says_which_server_refuses_and_why_without_the_password(refusal: str) -> None:
    settings, start, reason = REFUSALS[refusal]
    server = NatsServer(**settings)
    self_signed(server.directory)
    with server:
        url = server.url.replace("nats://", start)
        words = rf"there is no connection to NATS, .*: \w+://127\.0\.0\.1:{server.port}: .*({reason})"
        with pytest.raises(ConnectionError, match=words):
            await process_on(Served(lambda: NatsTransport(url)), State()).__aenter__()
