"""Kafka's wire protocol: frames, API versions, and the connections of server and client.

docs/broker-protocol.md explains how requests and responses are converted between versions.
"""
