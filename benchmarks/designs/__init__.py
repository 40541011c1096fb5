"""Older designs, at work: what is compared with this library's core.

Timers, all behind the one interface of `timer`: `call_at` (one of the event loop's each), `lazy_heap`,
`ticker_wheel`, and `kafka_timer`, Kafka's present one. Purgatories: `callback_dict` (what is written by
hand, over any of those timers), `kafka_purgatory`, Kafka's present one, and `kafka_08`, the one before.

Each is written as one would write it in Python for use: slots, no locks, and no layers that it could do
without. What a library adds, such as checks of arguments or containing what user code raises, is left out.
"""
