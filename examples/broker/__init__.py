"""A log broker's produce and fetch paths, as Kafka has them, on two purgatories.

``replica_manager.py`` is the place to start: an append parks a ``DelayedProduce``, a fetch parks a
``DelayedFetch``, and each is what completes the other. ``python -m examples.broker.simulator`` runs it under
load.
"""
