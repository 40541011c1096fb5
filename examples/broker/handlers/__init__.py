"""The handlers: one function for each API, which converts between kio's messages and the broker's classes."""
