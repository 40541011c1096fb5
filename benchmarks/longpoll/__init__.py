"""Ten thousand long polls on one server, beside the usual way: ``python -m benchmarks.longpoll --help``.

One small ASGI application on uvicorn, in a process of its own, for every `way` of waiting; only the waiting
differs. The usual way is an `asyncio.Condition` for each topic and `asyncio.wait_for`. Clients are raw
sockets in this process. Three things are asked: that one record wakes everybody (`wake-all`), that it wakes
the one poll of its topic among as many topics (`wake-topic`), and that it wakes the one client it is for
among all that poll the same topic (`wake-client`).

Each is asked twice: with servers that do not notice that a client has left, and with those that do.
"""
