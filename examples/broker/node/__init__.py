"""One broker: its replicas, its groups, its copy of the metadata, and its server."""
