"""Fingerprints, key hashes and sample strata as Spark columns, bit for bit those of the core.

`mm2slo_core.audit.fingerprint` and `record_sample` define them; these are for rows of the
Kafka connector: key and value binary, timestamp, headers array<struct<key, value>> (with
`includeHeaders`). Built-in functions only.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from mm2slo_core.audit.fingerprint import KEYED_DIGITS, NULL_FLAGS
from mm2slo_core.audit.record_identity import HEADER
from mm2slo_core.audit.record_sample import STEPS

if TYPE_CHECKING:
    from pyspark.sql import Column

    from mm2slo_core.audit.record_identity import Identity
    from mm2slo_core.audit.record_sample import Sample

_BLOCK: Final = 64
"""SHA-256 block size in bytes."""


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Columns of a landed record that are computed from its bytes."""

    fp: Column
    kh: Column
    size: Column
    in_records: Column
    in_keys: Column
    tombstone: Column
    masked: Column


def record_columns(identity: Identity, sample: Sample, *, headers: bool = True) -> RecordColumns:
    """The landed columns of a connector row.

    *headers* False: the row has no column `headers`, which counts as no headers. The strata read
    columns `fp` and `kh`, so select those first.
    """
    return RecordColumns(
        fp=fingerprint(identity, headers=headers),
        kh=key_hash(identity.hmac_key),
        size=F.coalesce(F.octet_length("key"), F.lit(0))
        + F.coalesce(F.octet_length("value"), F.lit(0)),
        in_records=is_sampled(sample, F.col("fp"), sample.record_threshold),
        in_keys=F.lit(True)
        if sample.census
        else F.coalesce(is_sampled(sample, F.col("kh"), sample.key_threshold), F.lit(False)),
        tombstone=F.col("value").isNull(),
        masked=masked_hashes(identity),
    )


def fingerprint(identity: Identity, *, headers: bool = True) -> Column:
    """The fingerprint of a connector row; bigint. *headers* False: the row has no such column.

    Without ignored headers no lambda is needed: a lambda takes the whole stage out of generated
    code, which costs more than all hashing.
    """
    if identity.hmac_key is not None:
        return _keyed(identity.hmac_key, F.concat(*_message(identity, headers=headers)))
    columns: list[Column] = []
    for name, covered in (("key", identity.key), ("value", identity.value)):
        if covered:
            columns += [F.isnull(name).cast("int"), _present(F.col(name))]
    if identity.timestamp:
        columns.append(F.unix_millis("timestamp"))
    if not identity.headers:
        return F.xxhash64(*columns)
    if not headers:
        return F.xxhash64(*columns, F.lit(0), F.lit(0))
    kept = _kept(identity)
    return F.xxhash64(*columns, _count(kept), _null_flags(kept), kept)


def _null_flags(headers: Column) -> Column:
    """A bit for each header whose value is null."""
    flags = F.lit(0)
    for place in range(NULL_FLAGS):
        header = F.get(headers, F.lit(place))
        missing = header.isNotNull() & header["value"].isNull()
        flags = flags + F.when(missing, 1 << place).otherwise(0)
    return flags


def key_hash(hmac_key: bytes | None = None) -> Column:
    """The hash of a connector row's key, null without a key; bigint."""
    return _hash_of(F.col("key"), hmac_key)


def masked_hashes(identity: Identity) -> Column:
    """Hashes of the parts that must change, null if null, empty or absent; array<bigint>."""
    hashes = [
        F.when(F.octet_length(part) > 0, _hash_of(part, identity.hmac_key))
        for part in map(_part, identity.must_change)
    ]
    return F.array(*hashes).cast("array<bigint>")


def _part(name: str) -> Column:
    if not name.startswith(HEADER):
        return F.col(name)
    header = name.removeprefix(HEADER)
    named = F.filter("headers", lambda h: h["key"] == header)
    return F.get(named, F.lit(0))["value"]


def _hash_of(part: Column, hmac_key: bytes | None) -> Column:
    hashed = F.xxhash64(part) if hmac_key is None else _keyed(hmac_key, _field(part))
    return F.when(part.isNotNull(), hashed)


def is_sampled(sample: Sample, hashed: Column, threshold: int) -> Column:
    """Whether the stratum has records of that hash; null for null, except in a census."""
    if sample.census:
        return F.lit(True)
    salt = F.lit(sample.salt).cast("bigint")
    drawn = F.pmod(F.xxhash64(salt, hashed), F.lit(STEPS)) < threshold
    return F.when(hashed.isNotNull(), drawn)


def _count(headers: Column) -> Column:
    # size(null) is null or -1, depending on the ANSI mode.
    return F.greatest(F.coalesce(F.size(headers), F.lit(0)), F.lit(0))


def _kept(identity: Identity) -> Column:
    if not identity.ignored_headers:
        return F.col("headers")
    return F.filter("headers", lambda h: ~h["key"].isin(*identity.ignored_headers))


def _present(part: Column) -> Column:
    return F.coalesce(part, F.lit(bytearray()))


def _message(identity: Identity, *, headers: bool) -> list[Column]:
    parts = [
        _field(F.col(name))
        for name, covered in (("key", identity.key), ("value", identity.value))
        if covered
    ]
    if identity.timestamp:
        parts.append(_text(F.concat(F.unix_millis("timestamp").cast("string"), F.lit(";"))))
    if identity.headers:
        none = _text(F.lit("0;"))
        if not headers:
            return [*parts, none]
        kept = _kept(identity)
        fields = F.aggregate(
            kept,
            F.lit(bytearray()),
            lambda joined, h: F.concat(joined, _field(_text(h["key"])), _field(h["value"])),
        )
        number = _text(F.concat(F.size(kept).cast("string"), F.lit(";")))
        parts.append(
            F.when(_count(F.col("headers")) == 0, none).otherwise(F.concat(number, fields))
        )
    return parts


def _text(text: Column) -> Column:
    return text.cast("binary")


def _field(part: Column) -> Column:
    length = _text(F.concat(F.octet_length(part).cast("string"), F.lit(":")))
    return F.when(part.isNull(), _text(F.lit("-"))).otherwise(F.concat(length, part))


def _keyed(key: bytes, message: Column) -> Column:
    """HMAC-SHA-256 (RFC 2104), its first digits as a number."""
    padded = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
    inner_pad, outer_pad = (
        F.lit(bytearray(byte ^ mask for byte in padded)) for mask in (0x36, 0x5C)
    )
    inner = F.unhex(F.sha2(F.concat(inner_pad, message), 256))
    outer = F.sha2(F.concat(outer_pad, inner), 256)
    return F.conv(F.substr(outer, F.lit(1), F.lit(KEYED_DIGITS)), 16, 10).cast("bigint")
