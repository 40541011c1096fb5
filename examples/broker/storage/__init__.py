"""A replica's log: segments of record batches, leader epochs and the state of idempotent producers."""
