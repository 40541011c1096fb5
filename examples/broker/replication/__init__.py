"""Partitions as leader and follower: appends, fetches, deletions, and their delayed operations."""
