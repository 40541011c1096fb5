"""The third design: replicas that each keep all records on a durable timing wheel."""
