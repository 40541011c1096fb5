"""Brokers that speak Kafka's protocol. Every wait in them is a delayed operation in a purgatory.

Start with ``replication/replica_manager.py``: an append waits as a ``DelayedProduce``, a fetch waits as a
``DelayedFetch``, and each completes the other. ``node/node.py`` is the broker around it. To serve one more
Kafka API, follow the docstring of ``protocol/apis.py``. ``python -m examples.broker`` serves real clients;
``python -m examples.broker.simulator`` produces and fetches under load without a network.
"""
