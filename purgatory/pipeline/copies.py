"""Copies among the segments of a batch: their bytes are read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.intake import ReadSegment
from purgatory.pipeline.listing import Segment, text_of

# The number of files that this process reads at a time.
_READERS: Final = 8


def copies_in(segments: Sequence[Segment]) -> Mapping[str, tuple[str, str]]:
    """The paths that have the bytes of an earlier segment: the path of that segment, and the digest."""
    sizes = Counter(each.size for each in segments)
    alike = [each for each in segments if sizes[each.size] > 1]
    with ThreadPoolExecutor(_READERS) as threads:
        digests = threads.map(_digest, alike)
    firsts: dict[str, str] = {}
    copies: dict[str, tuple[str, str]] = {}
    for segment, digest in zip(alike, digests, strict=True):
        if digest is not None and firsts.setdefault(digest, segment.path) != segment.path:
            copies[segment.path] = firsts[digest], digest
    return copies


def _digest(segment: Segment) -> str | None:
    """The digest; None if the file cannot be read. A worker then finds out why."""
    try:
        return segment.digest()
    except OSError:
        return None


def copied(path: str, first: ReadSegment, digest: str) -> ReadSegment:
    """What there is to say about a file with the bytes of the first."""
    if first.digest not in (None, digest):
        raise PipelineError(
            f"{text_of(first.path)}: it changed while compact read it, and its batch was not added; "
            "run compact again"
        )
    if first.problem is not None:
        return ReadSegment(path, problem=first.problem)
    return ReadSegment(path, digest=digest, copy=True, duplicates=first.rows or 0)
