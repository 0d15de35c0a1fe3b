"""Plans the scans: one per cluster, side, isolation level, identity and timestamp type (pure)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mm2slo_audit.scope.scope_assembly import Isolations
from mm2slo_core.audit.audit_scope import (
    SourcePartition,
    TargetPartition,
    TimestampType,
    UnitScope,
)
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.records.timeline_record import Side
from mm2slo_kafka.partition_offsets import Isolation


class FlowPlace(NamedTuple):
    """The unit and flow that a topic's records belong to, by index."""

    unit: int
    flow: int


class ScanRange(NamedTuple):
    """Offsets [start, end) of a partition."""

    topic: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scan:
    """One read of several topics of a cluster, each of one place."""

    cluster: str
    side: Side
    isolation: Isolation
    identity: Identity
    timestamps: TimestampType
    """The present setting of its topics; older records may have another."""
    places: Mapping[str, FlowPlace]
    ranges: tuple[ScanRange, ...]

    @property
    def compares_timestamps(self) -> bool:
        """Whether records are copies, and are recognized by the timestamp of their original."""
        return self.side is Side.TARGET and self.identity.timestamp

    @property
    def offsets(self) -> int:
        """Number of offsets to read."""
        return sum(each.end - each.start for each in self.ranges)


def group_by_flows(scopes: Iterable[UnitScope]) -> dict[str, list[UnitScope]]:
    """Units that the same flows feed, landed together; by the flows' slugs (`us-to-eu`)."""
    found: defaultdict[str, list[UnitScope]] = defaultdict(list)
    for scope in scopes:
        found["+".join(sorted(flow.flow.slug for flow in scope.flows))].append(scope)
    return dict(sorted(found.items()))


def split_ranges(ranges: Sequence[ScanRange], most: int) -> Iterator[ScanRange]:
    """*ranges* in equal parts of at most *most* offsets."""
    for each in ranges:
        size = each.end - each.start
        parts = -(-size // most)
        for part in range(parts):
            start, end = (each.start + size * edge // parts for edge in (part, part + 1))
            yield each._replace(start=start, end=end)


class _ScanKey(NamedTuple):
    cluster: str
    side: Side
    isolation: Isolation
    identity: Identity
    timestamps: TimestampType
    repeat: int
    """A topic with a second place is read a second time."""


def plan_scans(scopes: Iterable[UnitScope], isolations: Sequence[Isolations]) -> Iterator[Scan]:
    """The scans for *scopes*; *isolations* by index of the scope."""
    places: defaultdict[_ScanKey, dict[str, FlowPlace]] = defaultdict(dict)
    ranges: defaultdict[_ScanKey, list[ScanRange]] = defaultdict(list)
    for key, topic, place, partitions in _topics(scopes, isolations):
        while topic in places[key]:
            key = key._replace(repeat=key.repeat + 1)  # noqa: PLW2901 - the first free one
        places[key][topic] = place
        ranges[key] += [
            ScanRange(topic, each.partition, each.read_from, each.end)
            for each in partitions
            if each.read_from < each.end
        ]
    for key, found in places.items():
        if ranges[key]:
            yield Scan(*key[:-1], found, tuple(ranges[key]))


def _topics(
    scopes: Iterable[UnitScope], isolations: Sequence[Isolations]
) -> Iterator[
    tuple[_ScanKey, str, FlowPlace, Sequence[SourcePartition] | Sequence[TargetPartition]]
]:
    for scope in scopes:
        levels = isolations[scope.index]
        for index, flow in enumerate(scope.flows):
            key = _ScanKey(
                flow.flow.source,
                Side.SOURCE,
                levels.sources[index],
                scope.identity,
                flow.source_time,
                repeat=0,
            )
            yield key, flow.source_topic, FlowPlace(scope.index, index), flow.partitions
        target = scope.flows[0].flow.target
        key = _ScanKey(
            target, Side.TARGET, levels.target, scope.identity, scope.target_time, repeat=0
        )
        yield key, scope.target_topic, FlowPlace(scope.index, 0), scope.partitions
