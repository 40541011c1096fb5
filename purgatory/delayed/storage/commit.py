"""What a commit writes to the log, and how it answers."""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Sequence

from purgatory.delayed.storage.frames import CANCELLED, LATER, SOON, encode, end_body, message_body
from purgatory.delayed.storage.ids import IdRecord, Ids, bucket_of, digest
from purgatory.delayed.storage.requests import Answer, End, IdTaken, Put, Request, Stored


class Commit:
    """The frames of requests that share a sync, the notes for the ids, and the answers.

    The answer to a Put whose id is taken is IdTaken, or the earlier message if it is the same. The answer to
    an End is whether the message had not ended before.
    """

    def __init__(self, salt: int, ids: Ids, requests: Sequence[Request]) -> None:
        self._salt = salt
        self._ids = ids
        self.data = bytearray()
        self.notes: list[IdRecord] = []
        # What the requests before have changed.
        self._taken: dict[str, IdRecord] = {}
        self._ended: set[int] = set()
        # The random numbers of all tokens are one call of the system.
        self._tokens = iter(array("Q", secrets.token_bytes(8 * len(requests))))
        self._answers: list[Answer] = [
            self._put(request) if isinstance(request, Put) else self._end(request) for request in requests
        ]

    def answers(self, position: int) -> list[Answer]:
        """The answers when the data was written at this position."""
        return [
            Stored(answer.token, position + answer.position)
            if isinstance(answer, Stored) and not answer.repeated
            else answer
            for answer in self._answers
        ]

    def _put(self, request: Put) -> Stored | IdTaken:
        due, name, payload, soon, delivering = request
        token = next(self._tokens)
        if name is not None:
            earlier = self._taken.get(name) or self._ids.taken(name)
            content = digest(payload)
            if earlier is not None and earlier.token not in self._ended:
                if (earlier.due, earlier.digest) == (due, content):
                    return Stored(earlier.token, 0, repeated=True)
                if earlier.token not in delivering:
                    return IdTaken(f"the id {name!r} belongs to another message that is still to come")
            hashed = digest(name.encode())
            token = token - bucket_of(token) + bucket_of(hashed)
            self._taken[name] = IdRecord(token, due, hashed, content)
            self.notes.append(self._taken[name])
        stored = Stored(token, len(self.data))
        self.data += encode(self._salt, SOON if soon else LATER, due, token, message_body(name, payload))
        return stored

    def _end(self, request: End) -> bool:
        kind, token, due, named, check = request
        fresh = not check or not (token in self._ended or self._ids.ended(token))
        self._ended.add(token)
        if fresh:
            self.data += encode(self._salt, kind, due, token, end_body(named))
            if named or kind is CANCELLED:
                self.notes.append(IdRecord(token, due))
        return fresh
