"""One function for each API, between the protocol's classes and the domain's."""
