"""Brokers that speak Kafka's protocol. Every wait in them is a delayed operation in a purgatory.

``README.md`` says what to read, and in which order. ``python -m examples.broker.simulator`` produces and
fetches under load without a network; ``python -m examples.broker`` serves real clients.
"""
