"""Rows of the audit's Parquet files: hashes and offsets of records, without payload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_core.timeline_record import Side


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One sampled record of either side.

    Column names and types in Parquet, in this order: topic int, flow int, side byte (0 source,
    1 target), partition int, offset long, ts long (epoch ms), fp long, kh long or null, size int
    (bytes of key and value), in_records boolean, in_keys boolean, tombstone boolean, masked
    array of long.
    """

    topic: int
    """Index of the unit in the audit run."""
    flow: int
    """Index of the flow within the unit; 0 for target records, whose flow is not known."""
    side: Side
    partition: int
    offset: int
    timestamp: int
    """Epoch ms."""
    fingerprint: int
    """64 bits, signed, of the parts that `Identity` covers."""
    key_hash: int | None
    """64 bits, signed; None: the record has no key."""
    size: int
    """Bytes of key and value."""
    in_records: bool = True
    """In the record stratum of the sample."""
    in_keys: bool = True
    """In the key stratum of the sample; False for records without a key unless it is a census."""
    tombstone: bool = False
    """The value is null: on a compacted topic the key may be deleted on either side."""
    masked: tuple[int | None, ...] = ()
    """Hashes of the parts in `Identity.must_change`, in its order; None: null, empty or absent."""


@dataclass(frozen=True, slots=True)
class ArrivalPoll:
    """One poll of the watermark timeline for one partition: offsets below *end* had arrived.

    A record arrived within [earliest, latest] of the first poll whose end is beyond it.
    Columns in Parquet: topic int, flow int, side byte, partition int, end long, earliest long,
    latest long (epoch ms; earliest null: no previous poll).
    """

    topic: int
    flow: int
    side: Side
    partition: int
    end: int
    earliest: int | None
    latest: int
