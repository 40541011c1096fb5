"""Addresses as text."""


def address(host: str, port: int) -> str:
    """Return ``host:port``, with an IPv6 address in brackets, as clients take it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
