"""Kafka's wire protocol: frames, API versions, and the connections of server and client."""
