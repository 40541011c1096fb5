"""Consumer groups with the classic protocol: join, sync, heartbeat, leave and offset commit."""
