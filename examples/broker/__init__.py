"""A few brokers that speak Kafka's protocol, and whose every wait is a delayed operation.

``replication/replica_manager.py`` is the place to start: an append parks a ``DelayedProduce``, a fetch parks
a ``DelayedFetch``, and each is what completes the other. ``node/node.py`` puts a broker around it.
``python -m examples.broker`` serves real clients; ``python -m examples.broker.simulator`` runs produce and
fetch under load without a network.
"""
