"""A replica's log: segments of record batches, leader epochs, and what producers have written to it."""
