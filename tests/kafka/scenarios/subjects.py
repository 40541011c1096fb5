"""All scenarios, by subject."""

from typing import Final

from tests.kafka.scenarios import (
    administration,
    clients,
    commits,
    configs,
    deaths,
    fetch,
    groups,
    idempotence,
    java_client,
    metadata,
    offsets,
    produce,
    topics,
)
from tests.kafka.scenarios.scenario import SCENARIOS

# What ends a broker comes last.
_MODULES: Final = (
    *(produce, idempotence, fetch, offsets, groups, commits, topics, configs, administration, metadata),
    *(clients, java_client, deaths),
)
SUBJECTS: Final = tuple(module.__name__.rpartition(".")[2].replace("_", "-") for module in _MODULES)

__all__ = ["SCENARIOS", "SUBJECTS"]
