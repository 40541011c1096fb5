"""The controller, which decides the cluster's metadata, and each broker's copy of it."""
