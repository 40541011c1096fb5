"""The transports that a relay has: what carries its signals between processes."""
