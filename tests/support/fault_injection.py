"""Injects faults with known verdicts, and compares topics with an independent reader."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast

from confluent_kafka import KafkaError, Message, Producer
from topic_reader import read_topic

from mm2slo_core.audit.unit_outcome import Evidence, Verdict
from mm2slo_core.records.timeline_record import Side
from mm2slo_lab.lab_data import DataAdmin


@dataclass(frozen=True, slots=True)
class FullRead:
    """The difference of two topics as multisets of records, partition by partition."""

    pairs: tuple[tuple[Stored, Stored], ...]
    """Each source record with its first copy, in the order of source offsets."""
    missing: frozenset[Place]
    """On the source: records without a copy."""
    duplicates: frozenset[Place]
    """On the target: additional copies."""
    foreign: frozenset[Place]
    """On the target: records without a source record."""


def compare(
    source: Sequence[Stored], target: Sequence[Stored], *, timestamps: bool = True
) -> FullRead:
    """Pair each record of *source* with a record of *target* in its partition, oldest first.

    Without *timestamps* they are ignored, as for a target with LogAppendTime.
    """
    here, there = _grouped(source, timestamps=timestamps), _grouped(target, timestamps=timestamps)
    pairs = [
        pair
        for group, records in here.items()
        for pair in zip(records, there.get(group, ()), strict=False)
    ]
    return FullRead(
        pairs=tuple(sorted(pairs, key=lambda pair: pair[0].place)),
        missing=_beyond(here, lambda group: len(there.get(group, ()))),
        duplicates=_beyond(
            {group: records for group, records in there.items() if group in here},
            lambda group: len(here[group]),
        ),
        foreign=_beyond(
            {group: records for group, records in there.items() if group not in here},
            lambda _group: 0,
        ),
    )


def replays(places: Iterable[Place]) -> list[tuple[Place, int]]:
    """Blocks of *places* at consecutive offsets: first place and size."""
    blocks: list[tuple[Place, int]] = []
    for place in sorted(places):
        if blocks:
            start, size = blocks[-1]
            if (start.partition, start.offset + size) == place:
                blocks[-1] = start, size + 1
                continue
        blocks.append((place, 1))
    return blocks


_Group = tuple[int, "Content"]


def _grouped(records: Sequence[Stored], *, timestamps: bool) -> dict[_Group, list[Stored]]:
    groups: defaultdict[_Group, list[Stored]] = defaultdict(list)
    for record in sorted(records, key=lambda each: each.place):
        content = record.content if timestamps else replace(record.content, timestamp=0)
        groups[record.place.partition, content].append(record)
    return groups


def _beyond(groups: dict[_Group, list[Stored]], count: Callable[[_Group], int]) -> frozenset[Place]:
    """The records of each group after its first *count*."""
    return frozenset(
        record.place for group, records in groups.items() for record in records[count(group) :]
    )


MARK = "mm2slo-test-drop"
"""Header key of records that the flow drops."""


@dataclass(frozen=True, slots=True)
class _DirectWrite:
    """A record to be written to the target directly."""

    verdict: Verdict
    partition: int
    content: Content
    source: Place | None = None


@dataclass(slots=True)
class Truth:
    """Records by verdict, and the target counterparts of moved and altered records."""

    places: defaultdict[Verdict, set[Found]] = field(default_factory=lambda: defaultdict(set))
    counterparts: dict[Found, Place] = field(default_factory=dict)

    def add(self, verdict: Verdict, side: Side, places: Iterable[Place]) -> None:
        """Add *places* of one side with *verdict*."""
        self.places[verdict] |= {Found(side, *place) for place in places}

    def named(self) -> dict[Verdict, set[Found]]:
        """Records by verdict, without empty verdicts."""
        return {verdict: set(found) for verdict, found in self.places.items() if found}

    def counts(self) -> dict[Verdict, int]:
        """Number of records per verdict, without zeros."""
        return {verdict: len(found) for verdict, found in self.places.items() if found}


@dataclass(slots=True)
class Injector:
    """Writes one topic and modifies its copy; *truth* has the verdicts that an audit must find.

    Records are written to the source at once, direct writes to the target only by `write_target`,
    after the flow has passed their originals. End each partition with a `plain` record: the
    position of a flow passes dropped records with the next record that it copies.
    """

    source: Mapping[str, str]
    target: Mapping[str, str]
    topic: str
    copy: str
    truth: Truth = field(default_factory=Truth)
    copied: int = 0
    """Number of records that the flow copies."""
    _pending: list[_DirectWrite] = field(default_factory=list)

    def plain(self, records: Iterable[tuple[int, Content]]) -> list[Stored]:
        """Write records that must arrive."""
        written = write(self.source, self.topic, records)
        self.copied += len(written)
        return written

    def lose(self, records: Iterable[tuple[int, Content]]) -> list[Stored]:
        """Write records that the flow drops."""
        written = self._dropped(records)
        self.truth.add(Verdict.LOST, Side.SOURCE, (each.place for each in written))
        return written

    def alter(self, records: Iterable[tuple[int, Content]], value: bytes | None) -> None:
        """Write records that arrive with another *value*."""
        for each in self._dropped(records):
            changed = replace(each.content, value=value)
            direct = _DirectWrite(Verdict.ALTERED, each.place.partition, changed, each.place)
            self._pending.append(direct)

    def move(self, records: Iterable[tuple[int, Content]], partition: int) -> None:
        """Write records that arrive unchanged in another *partition*."""
        for each in self._dropped(records):
            self._pending.append(_DirectWrite(Verdict.MOVED, partition, each.content, each.place))

    def duplicate(self, record: Stored) -> None:
        """Add another copy of *record*."""
        direct = _DirectWrite(Verdict.DUPLICATE, record.place.partition, record.content)
        self._pending.append(direct)

    def foreign(self, partition: int, content: Content) -> None:
        """Add a record of another writer."""
        self._pending.append(_DirectWrite(Verdict.EXTRA, partition, content))

    def write_target(self) -> list[Stored]:
        """Write the pending records to the target, in order."""
        directs, self._pending = self._pending, []
        written = write(
            self.target, self.copy, ((direct.partition, direct.content) for direct in directs)
        )
        for direct, stored in zip(directs, written, strict=True):
            if direct.source is None:
                self.truth.add(direct.verdict, Side.TARGET, [stored.place])
            else:
                self.truth.add(direct.verdict, Side.SOURCE, [direct.source])
                self.truth.counterparts[Found(Side.SOURCE, *direct.source)] = stored.place
        return written

    def expire(self, admin: DataAdmin, records: Iterable[tuple[int, Content]]) -> None:
        """Write records and delete them from the source; only while the flow is stopped.

        They must be the oldest that the flow has not copied: all below them is deleted as well.
        """
        written = write(self.source, self.topic, records)
        before: dict[int, int] = {}
        for each in written:
            partition, offset = each.place
            before[partition] = max(before.get(partition, 0), offset + 1)
        starts = admin.delete_records(self.topic, before)
        assert starts == before
        self.truth.add(Verdict.EXPIRED, Side.SOURCE, (each.place for each in written))

    def _dropped(self, records: Iterable[tuple[int, Content]]) -> list[Stored]:
        marked = (
            (partition, replace(content, headers=(*content.headers, (MARK, b"1"))))
            for partition, content in records
        )
        return write(self.source, self.topic, marked)


class Found(NamedTuple):
    """A record with a verdict."""

    side: Side
    partition: int
    offset: int


def named(evidence: Iterable[Evidence]) -> dict[Verdict, set[Found]]:
    """Records by verdict in an audit's evidence; asserts that none occurs twice."""
    found: defaultdict[Verdict, list[Found]] = defaultdict(list)
    for each in evidence:
        found[each.verdict].append(Found(each.side, each.partition, each.offset))
    twice = [place for places in found.values() for place, n in Counter(places).items() if n > 1]
    assert not twice, f"named more than once: {twice[:5]}"
    return {verdict: set(places) for verdict, places in found.items()}


def counterparts(evidence: Iterable[Evidence]) -> dict[Found, tuple[int | None, int | None]]:
    """Counterparts of moved and altered records in an audit's evidence."""
    return {
        Found(each.side, each.partition, each.offset): (each.other_partition, each.other_offset)
        for each in evidence
        if each.other_offset is not None
    }


@dataclass(frozen=True, slots=True)
class Score:
    """Recall and precision of one verdict."""

    true: int
    found: int
    both: int

    @property
    def recall(self) -> float:
        """Share of true records that were found; 1 without true records."""
        return self.both / self.true if self.true else 1.0

    @property
    def precision(self) -> float:
        """Share of found records that are true; 1 if none were found."""
        return self.both / self.found if self.found else 1.0


def scores(
    truth: Mapping[Verdict, set[Found]], found: Mapping[Verdict, set[Found]]
) -> dict[Verdict, Score]:
    """The score of each verdict in *truth* or *found*."""
    return {
        verdict: Score(
            true=len(truth.get(verdict, ())),
            found=len(found.get(verdict, ())),
            both=len(truth.get(verdict, set()) & found.get(verdict, set())),
        )
        for verdict in sorted({*truth, *found})
    }


Headers = tuple[tuple[str, bytes | None], ...]
_TIMEOUT = 60.0

_PRODUCER = {
    "log_level": 2,
    "enable.idempotence": True,
    "linger.ms": 5,
    "queue.buffering.max.messages": 1_000_000,
    "message.max.bytes": 2_000_000,
}


class Place(NamedTuple):
    """Partition and offset of a record."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Content:
    """Content of a record. *timestamp* in epoch ms."""

    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Stored:
    """A record on a broker."""

    place: Place
    content: Content


def write(
    properties: Mapping[str, str], topic: str, records: Iterable[tuple[int, Content]]
) -> list[Stored]:
    """Write *records* into the given partitions; returns them with their places, in order.

    Raises RuntimeError if a record was not accepted.
    """
    producer = Producer({**_PRODUCER, **properties})
    wanted = list(records)
    places: dict[int, Place] = {}
    errors: list[str] = []

    def reported(number: int) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, message: Message) -> None:
            partition, offset = message.partition(), message.offset()
            if error is not None or partition is None or offset is None:
                errors.append(str(error))
            else:
                places[number] = Place(partition, offset)

        return note

    for number, (partition, content) in enumerate(wanted):
        producer.produce(
            topic,
            value=content.value,
            key=content.key,
            headers=[*content.headers],
            partition=partition,
            timestamp=content.timestamp,
            on_delivery=reported(number),
        )
        producer.poll(0)
    if producer.flush(_TIMEOUT) or errors:
        raise RuntimeError(
            f"{topic}: {len(places)} of {len(wanted)} records accepted: {errors[:1]}"
        )
    return [Stored(places[number], content) for number, (_partition, content) in enumerate(wanted)]


def read_all(
    properties: Mapping[str, str], topic: str, isolation: str = "read_uncommitted"
) -> list[Stored]:
    """All current records of *topic*."""
    return [_stored(message) for message in read_topic(properties, topic, isolation=isolation)]


def _stored(message: Message) -> Stored:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    _kind, timestamp = message.timestamp()
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    content = Content(timestamp, message.key(), message.value(), tuple(headers))
    return Stored(Place(partition, offset), content)
