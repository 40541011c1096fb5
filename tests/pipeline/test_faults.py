"""What the messages of the clients of object stores mean."""

from __future__ import annotations

import pytest

from purgatory.pipeline.faults import in_words


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "When listing objects under key 'x' in bucket 'b': AWS Error NO_SUCH_BUCKET",
            "b: the object store has no such bucket; correct the address, or make the bucket",
        ),
        (
            "Generic S3 error\n  Error performing GET http://127.0.0.1:1/b?list-type=2\n403 Forbidden\n"
            "<Error><Code>InvalidAccessKeyId</Code><BucketName>b</BucketName>"
            "<AWSAccessKeyId>the key</AWSAccessKeyId></Error>",
            "b: the object store refuses the key; check the variables with the key, and its rights",
        ),
        (
            "OSError: When reading for key 'x' in bucket 'b': AWS Error SLOW_DOWN during HeadObject",
            "b: the object store has too much to do; run the command again later",
        ),
        (
            "Generic GCS error: Error performing PUT https://storage.googleapis.com/b/x in 2 s - HTTP error: "
            "error sending request",
            "b: the object store does not answer; check the network and AWS_ENDPOINT_URL",
        ),
        (
            "AWS Error NETWORK_CONNECTION",
            "the object store does not answer; check the network and AWS_ENDPOINT_URL",
        ),
        ("[Errno 28] No space left on device", None),
    ],
)
def test_the_message_of_a_client_is_said_in_words(message: str, words: str | None) -> None:
    assert in_words(message) == words
