"""Partitions, and flows between clusters."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

_SLUG_UNSAFE = re.compile(r"[^a-z0-9]+")
_LABEL = re.compile(r"^\s*(?P<source>[^\s>]+)\s*->\s*(?P<target>[^\s>]+)\s*$")


class TopicPartition(NamedTuple):
    """One partition of a topic. A tuple, because hashing and comparing it must be fast."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


_MAX_SHARED = 1 << 17
_shared: dict[TopicPartition, TopicPartition] = {}


def shared_partition(topic: str, partition: int) -> TopicPartition:
    """The same object for all that refer to a partition: it is a key of many maps."""
    # Emptied now and then, so that partitions of deleted topics do not stay.
    if len(_shared) >= _MAX_SHARED:
        _shared.clear()
    wanted = TopicPartition(topic, partition)
    return _shared.setdefault(wanted, wanted)


@dataclass(frozen=True, slots=True, order=True)
class Flow:
    """A replication flow from one cluster to another, by MirrorMaker 2's cluster aliases."""

    source: str
    target: str

    @classmethod
    def parse(cls, text: str) -> Flow:
        """Parse `us->eu`.

        Raises ValueError if *text* is not `source->target`, or if both are the same cluster.
        """
        match = _LABEL.match(text)
        if match is None:
            raise ValueError(f"{text!r} is not a flow; expected source->target, as in us->eu")
        flow = cls(match["source"], match["target"])
        if flow.source == flow.target:
            raise ValueError(
                f"{text!r} has the same source and target; expected two different clusters"
            )
        return flow

    @property
    def label(self) -> str:
        """The value of the `flow` label, as in `us->eu`."""
        return f"{self.source}->{self.target}"

    @property
    def slug(self) -> str:
        """The id in URLs, files and OpenSLO, as in `us-to-eu`."""
        return f"{_slug(self.source)}-to-{_slug(self.target)}"

    @property
    def reverse(self) -> Flow:
        """The flow of the other direction."""
        return Flow(self.target, self.source)

    def __str__(self) -> str:
        return self.label


@cache
def _slug(alias: str) -> str:
    return _SLUG_UNSAFE.sub("-", alias.lower()).strip("-")


def slug_collisions(flows: Iterable[Flow]) -> Mapping[str, tuple[Flow, ...]]:
    """Return the slugs that more than one flow has; a configuration must have none."""
    by_slug: dict[str, set[Flow]] = defaultdict(set)
    for flow in flows:
        by_slug[flow.slug].add(flow)
    return {slug: tuple(sorted(found)) for slug, found in by_slug.items() if len(found) > 1}


def hops(flows: Collection[Flow], source: str, target: str) -> int | None:
    """Return the fewest of *flows* from *source* to *target*; None without a path."""
    reached, frontier, distance = {source}, {source}, 0
    while frontier:
        if target in frontier:
            return distance
        frontier = {
            flow.target for flow in flows if flow.source in frontier and flow.target not in reached
        }
        reached |= frontier
        distance += 1
    return None
