"""Parquet columns of landed records and polls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from mm2slo_core.audit.audit_record import ArrivalPoll, AuditRecord

SOURCE: Final = 0
TARGET: Final = 1

RECORD_SCHEMA: Final = (
    "topic int, flow int, side tinyint, partition int, offset bigint, ts bigint, fp bigint, "
    "kh bigint, size int, in_records boolean, in_keys boolean, tombstone boolean, "
    "masked array<bigint>"
)
POLL_SCHEMA: Final = (
    "topic int, flow int, side tinyint, partition int, end bigint, earliest bigint, latest bigint"
)


def side_code(side: Side) -> int:
    """The code of a side in Parquet."""
    return SOURCE if side is Side.SOURCE else TARGET


def record_row(record: AuditRecord) -> tuple[object, ...]:
    """A record in the order of `RECORD_SCHEMA`."""
    return (
        record.topic,
        record.flow,
        side_code(record.side),
        record.partition,
        record.offset,
        record.timestamp,
        record.fingerprint,
        record.key_hash,
        record.size,
        record.in_records,
        record.in_keys,
        record.tombstone,
        list(record.masked),
    )


def poll_row(poll: ArrivalPoll) -> tuple[int | None, ...]:
    """A poll in the order of `POLL_SCHEMA`."""
    return (
        poll.topic,
        poll.flow,
        side_code(poll.side),
        poll.partition,
        poll.end,
        poll.earliest,
        poll.latest,
    )
