"""Consumer groups by the classic protocol: joining, syncing, beating, committing."""
