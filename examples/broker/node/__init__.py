"""One broker put together: its replicas, its groups, its view of the cluster, and its port."""
