"""What the messages of the clients of object stores mean."""

from __future__ import annotations

import re
from typing import Final

NO_BUCKET: Final = "has no such bucket; correct the address, or make the bucket"

# What a message has in it, and what it means.
_MEANINGS: Final = (
    (r"NO_SUCH_BUCKET|NoSuchBucket", NO_BUCKET),
    (
        r"ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY_ID|InvalidAccessKeyId|SIGNATURE_DOES_NOT_MATCH"
        r"|SignatureDoesNotMatch|EXPIRED_TOKEN|ExpiredToken|40[13] (Unauthorized|Forbidden)",
        "refuses the key; check the variables with the key, and its rights",
    ),
    (
        r"SLOW_DOWN|SlowDown|THROTTLING|429 Too Many Requests|503 Service Unavailable|SERVICE_UNAVAILABLE",
        "has too much to do; run the command again later",
    ),
    (
        r"NETWORK_CONNECTION|error sending request|curlCode",
        "does not answer; check the network and AWS_ENDPOINT_URL",
    ),
)
_BUCKET: Final = re.compile(r"in bucket '([^']+)'|<BucketName>([^<]+)<|://[^/\s]+/([^/?\s]+)")


def in_words(message: str) -> str | None:
    """The cause and the fix, in one line; None if the message is not from the client of a store.

    The message itself may have parts of the key in it.
    """
    for pattern, meaning in _MEANINGS:
        if re.search(pattern, message):
            named = _BUCKET.search(message)
            place = f"{next(filter(None, named.groups()))}: " if named else ""
            return f"{place}the object store {meaning}"
    return None
