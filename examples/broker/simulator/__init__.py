"""The broker under load in one process, with a check that no record is lost, repeated or reordered."""
