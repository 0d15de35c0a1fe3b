"""Outcomes of canaries, counted individually from the records in the topics.

Shares no code with the exporter, and reads none of its counters. Headers on the source have the
due time of each canary; a copy arrived at its append time on the target, and no later than an
independent reader received it.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition
from topic_reader import read_topic

_STAMPS: Final = 0.5
"""Seconds by which the exporter may record an arrival later than this reader."""


class Sent(NamedTuple):
    """A canary on the source; it was due at `due` (epoch seconds, cut to milliseconds)."""

    sequence: int
    partition: int
    due: float


class Copy(NamedTuple):
    """A copy on the target, appended at `appended` and read at `seen`."""

    sequence: int
    partition: int
    offset: int
    appended: float
    seen: float


class Event(NamedTuple):
    """An event that is counted once, at `at`; good is None if it is uncertain."""

    at: float
    good: bool | None


class CopyListener:
    """Reads *topic* from its start, and records when each record was read."""

    def __init__(self, properties: Mapping[str, str], topic: str, partitions: int) -> None:
        self._seen: list[tuple[Message, float]] = []
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {**properties, "group.id": "canary-log", "enable.auto.commit": False, "log_level": 2}
        )
        self._places = [
            TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)
        ]
        self._thread = threading.Thread(target=self._listen, name=f"listen-{topic}")

    def copies(self, instance: str, flow: str) -> list[Copy]:
        """Copies of one exporter's canaries of a flow, in order of arrival."""
        found = []
        for message, seen in list(self._seen):
            sequence = _sequence(message, instance, flow)
            if sequence is not None:
                _, appended = message.timestamp()
                place = message.partition(), message.offset()
                assert None not in place
                found.append(Copy(sequence, *place, appended / 1000, seen))  # type: ignore[arg-type]  # just asserted
        return found

    def __enter__(self) -> Self:
        self._consumer.assign(self._places)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()

    def _listen(self) -> None:
        while not self._stopping.is_set():
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                self._seen.append((message, time.time()))


def sent_canaries(
    properties: Mapping[str, str], topic: str, instance: str, flow: str
) -> list[Sent]:
    """All canaries of one exporter and flow, in order, without gaps."""
    found = []
    for message in read_topic(properties, topic):
        sequence = _sequence(message, instance, flow)
        if sequence is not None:
            due = int(dict(message.headers() or [])["mm2slo-sent"] or b"") / 1000
            partition = message.partition()
            assert partition is not None
            found.append(Sent(sequence, partition, due))
    found.sort()
    numbers = [each.sequence for each in found]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), "a canary was not sent"
    return found


def events(
    sent: Sequence[Sent], copies: Sequence[Copy], deadline: float, tiers: Mapping[str, float]
) -> dict[str, list[Event]]:
    """Events of each SLI, by the suffix of its objective's id.

    Availability and latency count at the arrival or the deadline, all others at the arrival.
    """
    first: dict[int, Copy] = {}
    further = []
    for copy in copies:
        if copy.sequence in first:
            further.append(copy)
        else:
            first[copy.sequence] = copy
    limits = {"availability": deadline, **tiers}
    found: dict[str, list[Event]] = {name: [] for name in limits}
    for canary in sent:
        arrival = first.get(canary.sequence)
        by_deadline = _within(canary, arrival, deadline)
        for name, limit in limits.items():
            if arrival is None or by_deadline is False:
                found[name].append(Event(canary.due + deadline, good=False))
            else:
                found[name].append(Event(arrival.appended, _within(canary, arrival, limit)))
    known = {each.sequence: each for each in sent}
    arrivals = [each for each in first.values() if each.sequence in known]
    found["completeness"] = [Event(each.appended, good=True) for each in arrivals]
    found["affinity"] = [
        Event(each.appended, each.partition == known[each.sequence].partition) for each in arrivals
    ]
    found["uniqueness"] = found["completeness"] + [Event(each.appended, False) for each in further]
    found["order"] = []
    newest: dict[int, int] = {}
    for each in arrivals:
        partition = known[each.sequence].partition
        found["order"].append(Event(each.appended, each.sequence > newest.get(partition, -1)))
        newest[partition] = max(each.sequence, newest.get(partition, -1))
    return found


def _within(canary: Sent, arrival: Copy | None, limit: float) -> bool | None:
    """Whether it arrived within *limit* seconds; None if uncertain."""
    if arrival is None:
        return False
    if max(arrival.appended, arrival.seen) + _STAMPS - canary.due <= limit:
        return True
    # Due times are truncated to milliseconds.
    return False if arrival.appended - canary.due - 0.001 > limit else None


def _sequence(message: Message, instance: str, flow: str) -> int | None:
    headers = dict(message.headers() or [])
    if (headers.get("mm2slo-instance"), headers.get("mm2slo-flow")) != (
        instance.encode(),
        flow.encode(),
    ):
        return None
    return int(headers["mm2slo-sequence"] or b"")


class Range(NamedTuple):
    """Bounds of a number."""

    least: int
    most: int

    @property
    def exact(self) -> bool:
        """Whether the bounds are equal."""
        return self.least == self.most

    def holds(self, number: float) -> bool:
        """Whether *number* is within the bounds."""
        return self.least <= number <= self.most


class Counts(NamedTuple):
    """Events of a period."""

    good: Range
    bad: Range
    total: Range


def count(found: Sequence[Event], start: float, end: float, *, shown: float, late: float) -> Counts:
    """Events first shown by scrapes due after *start* up to *end*.

    The exporter publishes an event within *shown* seconds, and a scrape may be *late* seconds late,
    so events close to an edge may be on either side.
    """
    certain = [each for each in found if start + late <= each.at <= end - shown]
    possible = [each for each in found if start - shown < each.at < end + late]
    return Counts(
        good=Range(
            sum(each.good is True for each in certain),
            sum(each.good is not False for each in possible),
        ),
        bad=Range(
            sum(each.good is False for each in certain),
            sum(each.good is not True for each in possible),
        ),
        total=Range(len(certain), len(possible)),
    )
