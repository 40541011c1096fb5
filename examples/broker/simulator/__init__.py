"""A simulator: the broker under load in one process, and a check that no record is lost or reordered."""
