"""Brokers, instances, load and a check, in one command."""
