"""The watermark timeline: the end offsets of a topic over time, one record per poll.

A record replicated by MM2 keeps its source timestamp and has no arrival time; the timeline gives it
later: a record arrived within [previous request, this response] of the first poll with an end
offset beyond it. `ArrivalHistory` and the audit read it.

Key: `<flow>/<side>/<topic>`, UTF-8, with the flow's slug, since several flows may share a topic.
Value: JSON in UTF-8, no spaces, version 1:

    v  int          version; others are rejected
    f  string       flow, as in us->eu
    s  string       side: source or target
    t  string       topic name on that side
    i  string|null  topic id (KIP-516) as brokers print it
    l  string       isolation of the end offsets: read_uncommitted (these are high watermarks) or
                    read_committed (last stable offsets)
    q  [int x4]     request time in epoch ms; relative to it in ms: response (later), request and
                    response of the previous successful poll (earlier; both null: no previous poll)
    p  [int]        partition numbers; absent: 0, 1, 2, ...
    e  [int]        end offset per partition
    b  [int|null]   records held: end - log start
    c  [int|null]   end - committed source offset (MM2's mm2-offsets topic); source side only
    u  [int|null]   end - upstream offset of the newest offset sync; source side only
    d  [int|null]   downstream offset of that sync
    n  [int]        new records since the previous poll; only in the arrivals topic

A record of the arrivals topic has only partitions that grew since the previous poll. It is complete
in itself: the records [e - n, e) arrived between the request of that poll and this response.

A column is absent if it is null for all partitions. Distances may be negative after a truncation.
Requests are rounded down and responses up to whole milliseconds, so that brackets only get wider
(except for 1 us of floating-point resolution). Distances instead of offsets make the record a
quarter smaller, and compressed batches smaller than fixed-width binary. Spark reads it with
built-in functions: from_json, arrays_zip, posexplode, and `e - u`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from operator import sub
from typing import Any

from mm2slo_core.records.connect_records import decode_versioned, get_field, unexpected_shape
from mm2slo_core.topology import Flow

VERSION = 1
_KIND = "timeline"
_RESOLUTION_MS = 0.001
_dump = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode

Column = tuple[int | None, ...]
"""One value per partition, in the order of `partitions`; None: not known."""


def is_known(column: Column) -> bool:
    """Whether the column has a value for any partition."""
    return bool(column) and (column[0] is not None or column.count(None) < len(column))


class Side(StrEnum):
    """The side of the flow."""

    SOURCE = "source"
    TARGET = "target"


@dataclass(frozen=True, slots=True)
class PollTimes:
    """Times of a poll and of the previous successful poll, in epoch seconds.

    The latter two are both None without a previous poll.
    """

    requested_at: float
    answered_at: float
    previous_requested_at: float | None = None
    previous_answered_at: float | None = None

    def __post_init__(self) -> None:
        if (self.previous_requested_at is None) != (self.previous_answered_at is None):
            raise ValueError(f"{self}: expected both times of the previous poll, or none")


@dataclass(frozen=True, slots=True)
class WatermarkRecord:
    """One topic at one poll. Columns that are not known are empty."""

    flow: Flow
    side: Side
    topic: str
    topic_id: str | None
    isolation: str
    times: PollTimes
    partitions: tuple[int, ...]
    ends: tuple[int, ...]
    log_starts: Column = ()
    committed: Column = ()
    """Offset of the last source record that MM2 committed."""
    sync_upstreams: Column = ()
    sync_downstreams: Column = ()
    arrived: Column = ()
    """New records since the previous poll, all known or none."""

    def __post_init__(self) -> None:
        count = len(self.partitions)
        for column in (
            self.log_starts,
            self.committed,
            self.sync_upstreams,
            self.sync_downstreams,
            self.arrived,
        ):
            if column and len(column) != count:
                raise ValueError(f"{self.topic}: {len(column)} values for {count} partitions")
        if len(self.ends) != count:
            raise ValueError(f"{self.topic}: {len(self.ends)} end offsets for {count} partitions")

    def encode_key(self) -> bytes:
        """Return the record key, which keeps the records of a topic and side in order."""
        return f"{self.flow.slug}/{self.side}/{self.topic}".encode()

    def encode_value(self) -> bytes:
        fields: dict[str, object] = {
            "v": VERSION,
            "f": self.flow.label,
            "s": self.side,
            "t": self.topic,
            "i": self.topic_id,
            "l": self.isolation,
            "q": _encode_times(self.times),
        }
        if self.partitions != tuple(range(len(self.partitions))):
            fields["p"] = self.partitions
        fields["e"] = self.ends
        columns = (
            ("b", _distances(self.ends, self.log_starts)),
            ("c", _distances(self.ends, self.committed)),
            ("u", _distances(self.ends, self.sync_upstreams)),
            ("d", self.sync_downstreams),
            ("n", self.arrived),
        )
        fields |= {name: column for name, column in columns if is_known(column)}
        return _dump(fields).encode()

    @classmethod
    def decode(cls, value: bytes | None) -> WatermarkRecord:
        """Decode a record of the timeline topic.

        Raises DecodeError if it is damaged, null, or of another version.
        """
        if value is None:
            raise unexpected_shape(_KIND, "a null value, expected a JSON object")
        found = decode_versioned(_KIND, value, VERSION)
        topic_id = found.get("i")
        if topic_id is not None and not isinstance(topic_id, str):
            raise unexpected_shape(_KIND, "'i' is neither a string nor null")
        side = get_field(_KIND, found, "s", str)
        if side not in tuple(Side):
            raise unexpected_shape(_KIND, "'s' is neither source nor target")
        ends = _integers(found, "e")
        count = len(ends)
        return cls(
            flow=_flow(get_field(_KIND, found, "f", str)),
            side=Side(side),
            topic=get_field(_KIND, found, "t", str),
            topic_id=topic_id,
            isolation=get_field(_KIND, found, "l", str),
            times=_decode_times(found.get("q")),
            partitions=_integers(found, "p", count) if "p" in found else tuple(range(count)),
            ends=ends,
            log_starts=_distances(ends, _column(found, "b", count)),
            committed=_distances(ends, _column(found, "c", count)),
            sync_upstreams=_distances(ends, _column(found, "u", count)),
            sync_downstreams=_column(found, "d", count),
            arrived=_integers(found, "n", count) if "n" in found else (),
        )


def _flow(label: str) -> Flow:
    try:
        return Flow.parse(label)
    except ValueError:
        raise unexpected_shape(_KIND, "'f' is not source->target") from None


def _distances(ends: Sequence[int], values: Column) -> Column:
    # Offsets to distances from the ends, and back: end - (end - x) = x.
    if not values:
        return ()
    try:
        return tuple(map(sub, ends, values))
    except TypeError:  # some are None
        return tuple(
            None if value is None else end - value for end, value in zip(ends, values, strict=True)
        )


def _rounded_down(at: float) -> int:
    """Return epoch milliseconds; the addend keeps whole milliseconds unchanged."""
    return math.floor(at * 1000 + _RESOLUTION_MS)


def _rounded_up(at: float) -> int:
    return math.ceil(at * 1000 - _RESOLUTION_MS)


@lru_cache(maxsize=4)
def _encode_times(times: PollTimes) -> list[int | None]:
    requested = _rounded_down(times.requested_at)
    answered = _rounded_up(times.answered_at) - requested
    if times.previous_requested_at is None or times.previous_answered_at is None:
        return [requested, answered, None, None]
    return [
        requested,
        answered,
        requested - _rounded_down(times.previous_requested_at),
        requested - _rounded_up(times.previous_answered_at),
    ]


def _decode_times(found: object) -> PollTimes:
    match found:
        case [int(requested), int(answered), None, None]:
            return PollTimes(requested / 1000, (requested + answered) / 1000)
        case [int(requested), int(answered), int(previous), int(previous_answered)]:
            return PollTimes(
                requested / 1000,
                (requested + answered) / 1000,
                (requested - previous) / 1000,
                (requested - previous_answered) / 1000,
            )
    raise unexpected_shape(_KIND, "'q' is not four numbers, of which the last two may be null")


def _column(found: dict[str, Any], name: str, count: int) -> Column:
    column = found.get(name)
    if column is None:
        return ()
    if (
        not isinstance(column, list)
        or len(column) != count
        or not all(value is None or type(value) is int for value in column)
    ):
        raise unexpected_shape(_KIND, f"{name!r} is not a list of {count} numbers or nulls")
    return tuple(column)


def _integers(found: dict[str, Any], name: str, count: int | None = None) -> tuple[int, ...]:
    numbers = get_field(_KIND, found, name, list)
    if not all(type(number) is int for number in numbers):
        raise unexpected_shape(_KIND, f"{name!r} is not a list of numbers")
    if count is not None and len(numbers) != count:
        raise unexpected_shape(_KIND, f"{name!r} is not a list of {count} numbers")
    return tuple(numbers)
