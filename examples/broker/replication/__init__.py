"""Leading and following partitions: appends, fetches and deletions, and what waits for them."""
