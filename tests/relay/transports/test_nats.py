"""What the transport for NATS refuses without a server."""

from __future__ import annotations

from typing import Any

import pytest
from nats.aio.client import Client

from purgatory.relay.transports.nats import NatsTransport

URL = "nats://localhost:4222"


@pytest.mark.parametrize("server", [Client(), "", [], None])
def test_what_is_neither_a_url_nor_several_is_refused(server: Any) -> None:
    with pytest.raises(TypeError, match="must be a URL or a list of URLs, not"):
        NatsTransport(server)


@pytest.mark.parametrize("prefix", ["", "a b", "app.", ".app", "a..b", "app.*", "app.>", "a\nb"])
def test_a_prefix_that_is_no_subject_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="subject of NATS without wildcards"):
        NatsTransport(URL, prefix=prefix)


def test_an_option_that_the_transport_sets_is_refused() -> None:
    with pytest.raises(TypeError, match="sets allow_reconnect and no_echo by itself"):
        NatsTransport(URL, no_echo=True, allow_reconnect=True)


@pytest.mark.parametrize("option", ["passwort", "servers"])
def test_an_option_that_nats_does_not_have_or_that_is_given_twice_is_refused(option: str) -> None:
    with pytest.raises(TypeError, match=f"the options are those of nats.connect: .*{option}"):
        NatsTransport(URL, **{option: URL})
