"""What Kafka answers otherwise, and why: the table in docs/broker-protocol.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_NOT_READ: Final = "the broker keeps batches as bytes, and reads a record only to find a time"
_NO_SECURITY: Final = "there is no security"
_MESSAGES: Final = "the code is the same"
_OWN_SETTINGS: Final = "the broker has its own settings, see [the broker example](broker.md)"
_SIMPLER: Final = "no client sends it, and a refusal is safer"


@dataclass(frozen=True, slots=True)
class Difference:
    """``scenarios`` and ``where`` are regular expressions: for names, and for places in the answers."""

    scenarios: str
    where: str
    what: str
    kafka: str
    here: str
    because: str

    @property
    def row(self) -> str:
        """The row of the table."""
        return f"| {self.what} | {self.kafka} | {self.here} | {self.because} |"


DIFFERENCES: Final[Mapping[str, Sequence[Difference]]] = {
    "produce": (
        Difference(
            "faulty-(more-records|fewer-compressed|records-are|compressed-records).*",
            r"\[0\]\.(error_code|base_offset|log_start_offset)|\[1\]\.offset",
            "a batch whose records are garbage, or not as many as its header says",
            "INVALID_RECORD or UNKNOWN_SERVER_ERROR",
            "is appended",
            _NOT_READ,
        ),
        Difference(
            "accepted-(max-time|claims-the-time).*",
            r"\[1\]\.records\[0\]\.(max_timestamp|attributes)",
            "a header whose times disagree with the records or the topic",
            "is corrected",
            "is kept",
            _NOT_READ,
        ),
        Difference(
            "faulty-(bytes-after-the-batch|producer-without-epoch)",
            r"\[0\]\.(error_code|base_offset|log_start_offset)|\[1\]\.offset",
            "bytes after a batch, or a producer id with epoch -1",
            "is appended",
            "INVALID_RECORD",
            _SIMPLER,
        ),
        Difference(
            "partition-named-twice",
            r"\[0\]\.responses\[0\]\.partition_responses.*|\[1\]\.offset",
            "a partition named twice in Produce",
            "one of the two batches is appended",
            "INVALID_REQUEST",
            _SIMPLER,
        ),
        Difference(
            "faulty-(unknown-codec|format-3)",
            r"\[0\]\.error_code",
            "an unknown codec, or a format after 2",
            "UNKNOWN_SERVER_ERROR, CORRUPT_MESSAGE",
            "INVALID_RECORD",
            "the bytes are not damaged, and the broker has not failed",
        ),
        Difference(
            "(faulty|accepted)-.*|time-beside-now-CreateTime-.*",
            r"\[0\]\.(log_start_offset|error_message|record_errors)",
            "the log's start, and the message, in a refusal of a batch",
            "often there",
            "-1 and null",
            "clients use the code alone",
        ),
        Difference(
            "time-beside-now-CreateTime-.*",
            r"\[0\]\.(error_code|base_offset)|\[1\]\.offset",
            "a time of a producer that is more than an hour ahead",
            "INVALID_TIMESTAMP",
            "is appended",
            "`message.timestamp.after.max.ms` is not served, so that tests may choose any time",
        ),
        Difference(
            "to-a-.*",
            r"current_leader\..*",
            "the leader in the answer of another broker (KIP-951)",
            "its id and epoch",
            "-1",
            "clients ask for the metadata, as they did before",
        ),
        Difference(
            "zstd-in-version-.*",
            "error_code|base_offset|log_start_offset",
            "zstd in Produce before version 7",
            "UNSUPPORTED_COMPRESSION_TYPE",
            "is appended",
            "clients that know zstd have version 7",
        ),
        Difference(
            "topic-with-its-own-codec-.*",
            r"\[1\]\[0\]",
            "`compression.type` of a topic",
            "batches are compressed again",
            "they stay as the producer has compressed them",
            "the broker keeps batches as bytes, and librdkafka's tests create topics with it",
        ),
    ),
    "idempotence": (
        Difference(
            "sent-does-not-begin-at-0",
            ".*",
            "an unknown producer that does not begin at sequence 0",
            "is accepted",
            "OUT_OF_ORDER_SEQUENCE_NUMBER, unless records were deleted",
            "its first batch was lost with the previous leader ([KAFKA-15591](https://issues.apache.org/jira/browse/KAFKA-15591))",
        ),
        Difference(
            "sent-.*",
            r"\[0\]\[\d\]\.log_start_offset",
            "the log's start in the refusal of a sequence",
            "is there",
            "-1",
            "clients use the code alone",
        ),
        Difference(
            "sent-.*|retry-with-acks-.*",
            r"(\[0\])?\[\d\]\.log_append_time",
            "the time of the append of a retry, where records have the times of their producers",
            "the time of the batch",
            "null",
            "there is no such time",
        ),
        Difference(
            "described-follower",
            r"topics\[0\]\.partitions\[0\]\.error_code",
            "DescribeProducers on a follower",
            "the producers",
            "NOT_LEADER_OR_FOLLOWER",
            "Java's client asks the leader, unless it is told to ask a replica",
        ),
        Difference(
            "described-unknown-topic",
            r"topics\[0\]\.partitions\[0\]\.error_message",
            "the message of DescribeProducers for an unknown topic",
            "text",
            "null",
            _MESSAGES,
        ),
    ),
    "fetch": (
        Difference(
            "from-a-follower-in-version-1[12]",
            "",
            "a consumer that fetches from a follower (KIP-392)",
            "records",
            "NOT_LEADER_OR_FOLLOWER",
            "there are no racks, so no client is sent to a follower",
        ),
        Difference(
            "(partition-)?max-bytes--1",
            ".*",
            "a negative number of bytes in Fetch",
            "UNKNOWN_SERVER_ERROR",
            "counts as 0",
            "the broker has not failed",
        ),
    ),
    "offsets": (
        Difference(
            "(without-times|all-deleted)--3",
            "timestamp|offset|leader_epoch",
            "the highest time of a log without times, or without records",
            "the first offset, or a deleted one",
            "none",
            "there is no such record",
        ),
        Difference(
            "partition-named-twice",
            r"topics\[0\]\.partitions",
            "a partition named twice in ListOffsets",
            "INVALID_REQUEST",
            "both answers",
            "both times are known",
        ),
    ),
    "groups": (
        Difference(
            "coordinator-(in-version|of-key-type)-.*",
            r".*error_message",
            "the message of FindCoordinator",
            "`NONE` until version 3, then empty in any case",
            "empty, or the reason of an error",
            _MESSAGES,
        ),
        Difference(
            "coordinator-of-a-transaction",
            "",
            "the coordinator of a transaction",
            "a broker, after COORDINATOR_NOT_AVAILABLE",
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
            "there are no transactions",
        ),
        Difference(
            "empty-protocol-name",
            r"\[1\]\.protocol_name",
            "the name of the protocol in JoinGroup, if a member calls it by an empty name",
            "null",
            "empty",
            "no client does",
        ),
    ),
    "commits": (
        Difference(
            "deletion-committed",
            r"\[2\]\.group_state",
            "a group whose last offset is deleted",
            "is `Empty` until the next clean-up",
            "is `Dead` at once",
            "nothing of it is left",
        ),
        Difference(
            ".*",
            r".*client_host",
            "the host of a member",
            "`/127.0.0.1`",
            "`127.0.0.1`",
            "the slash is how Java writes an address without a name",
        ),
        Difference(
            "describe-with-authorized-operations-True",
            "",
            "authorized operations of a group",
            "all",
            "none are told",
            _NO_SECURITY,
        ),
    ),
    "topics": (
        Difference(
            "created-(compacted|unclean-elections|preallocated)-.*",
            ".*",
            "a setting with one supported value, such as `cleanup.policy` or `segment.ms`",
            "takes others, too",
            "INVALID_CONFIG",
            _OWN_SETTINGS,
        ),
        Difference(
            "created-old-format-.*",
            ".*",
            "`message.format.version`",
            "INVALID_CONFIG",
            "is ignored, and not shown",
            "Kafka 3 ignores it, and librdkafka's tests alter it",
        ),
        Difference(
            "created-spaces-around-a-value-.*",
            r"\[2\]\[0\]\.value",
            "spaces around the value of a setting",
            "are shown",
            "are left out",
            "the value is the same",
        ),
        Difference(
            "named-15|grown-topic-internal",
            r"error_code|results\[0\]\.error_code",
            "creation and growth of an internal topic",
            "as of any topic",
            "INVALID_TOPIC_EXCEPTION",
            "a group's coordinator depends on the number of partitions",
        ),
        Difference(
            "named-17",
            ".*",
            "a topic named `__cluster_metadata`",
            "INVALID_REQUEST",
            "is created",
            "the metadata is in no topic here",
        ),
        Difference(
            "collide-in-one-request-number-0",
            r"\[0\]",
            "topics that collide, such as `q.r` and `q_r`, in one request",
            "are created",
            "the second one is refused, as in two requests",
            "Kafka looks at what exists before the request",
        ),
        Difference(
            "collides-when-created-on-demand",
            r"\[\d\]\[0\]\.error_code",
            "a topic created on demand that collides with another",
            "UNKNOWN_TOPIC_OR_PARTITION",
            "INVALID_TOPIC_EXCEPTION",
            "the broker waits for the creation, so it knows the reason",
        ),
        Difference(
            "grown-topic-unknown",
            r"results\[0\]\.error_message",
            "the message of CreatePartitions for an unknown topic",
            "null",
            "text",
            _MESSAGES,
        ),
    ),
    "configs": (
        Difference(
            "changed-(unknown|negative)-operation-.*",
            r"responses\[0\]\.(error_code|error_message)",
            "an unknown operation on a setting",
            "UNKNOWN_SERVER_ERROR",
            "INVALID_REQUEST",
            "the broker has not failed",
        ),
        Difference(
            "changed-resource-empty-name",
            r"responses\[0\]\.error_code",
            "a change of the settings of a topic with an empty name",
            "INVALID_REQUEST",
            "INVALID_TOPIC_EXCEPTION, as for other illegal names",
            "no client sends it",
        ),
        Difference(
            "described-resource-unknown-topic",
            r"results\[0\]\.error_message",
            "the message of DescribeConfigs for an unknown topic",
            "empty",
            "text",
            _MESSAGES,
        ),
        Difference(
            ".*",
            r".*(config_type|config_source|read_only|synonyms)",
            "the type, the synonyms, the source and the read-only flag of a setting",
            "are told",
            "no type and no synonyms; settings of a broker, and those with one value, are read-only",
            _OWN_SETTINGS,
        ),
        Difference(
            "all-settings|setting-with-its-documentation",
            ".*",
            "which settings a topic has, and their documentation",
            "36 settings, with documentation",
            "those in `settings.py`, without",
            _OWN_SETTINGS,
        ),
    ),
    "administration": (
        Difference(
            "election-of-.*",
            "replica_election_results.*",
            "the partitions in ElectLeaders with an unknown type, with one named twice, or with all",
            "each one that is named; with all, each topic",
            "none, one, and those that needed an election",
            "the code is the same, and the rest repeats the request",
        ),
        Difference(
            "cluster-with-authorized-operations-True|topic-partitions-of-.*",
            r"|topics\[\d\]\.topic_authorized_operations",
            "authorized operations of the cluster and of topics in DescribeTopicPartitions",
            "all",
            "none are told",
            _NO_SECURITY,
        ),
        Difference(
            "topic-partitions-from-cursor-.*",
            r"\[0\].*",
            "a cursor with a negative partition, or with a topic that is not asked for",
            "INVALID_REQUEST",
            "what comes after it",
            "clients send back the cursor that they got",
        ),
        Difference(
            "served-versions",
            r"\w+\[[01]\]",
            "the versions of twelve APIs",
            "some newer ones",
            "as in `apis.py`",
            "a comment there gives the reason for each",
        ),
    ),
    "metadata": (
        Difference(
            "by-id-.*",
            r"\[0\]\.(error_code|name|partitions)",
            "topics by their id in Metadata before version 12, and neither an id nor a name",
            "INVALID_REQUEST, UNKNOWN_SERVER_ERROR",
            "the topic, or UNKNOWN_TOPIC_ID",
            "no client sends it",
        ),
        Difference(
            "first-answer-of-a-topic-created-on-demand",
            "",
            "the first answer about a topic that is created on demand",
            "UNKNOWN_TOPIC_OR_PARTITION",
            "the topic",
            "the broker waits for the creation, and saves the client a retry",
        ),
        Difference(
            "with-authorized-operations-True",
            "",
            "authorized operations of a topic in Metadata",
            "all",
            "none are told",
            _NO_SECURITY,
        ),
    ),
    "deaths": (
        Difference(
            ".*",
            r"\[\d\]\.described\[0\]\.topic_authorized_operations",
            "the same, while a broker is dead and before",
            "all",
            "none are told",
            _NO_SECURITY,
        ),
        Difference(
            ".*",
            r"\[2\]\.topic without a leader\.partitions\[0\]\.isr_nodes",
            "the in-sync replicas of a partition whose last one is dead (KIP-966)",
            "none, and one that is eligible",
            "the last one",
            "there are no eligible leader replicas: the last one stays in sync, as before Kafka 4",
        ),
    ),
    "java-client": (
        Difference(
            "asked-settings",
            "",
            "the type of a setting, for the Java client",
            "`LONG`",
            "`UNKNOWN`",
            _OWN_SETTINGS,
        ),
        Difference(
            "asked-(describe-an-unknown-group|remove-members-of-an-unknown-group)",
            "",
            "an unknown group, for the Java client",
            "GroupIdNotFoundException",
            "is dead",
            "DescribeGroups has the error from version 6 on",
        ),
    ),
}
