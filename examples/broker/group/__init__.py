"""Consumer groups with the classic protocol: join, sync, heartbeat, leave and offset commit.

docs/broker.md has a picture of a rebalance.
"""
