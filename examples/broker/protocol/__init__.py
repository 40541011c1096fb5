"""Kafka's wire protocol: frames, versions, and connections at either end."""
