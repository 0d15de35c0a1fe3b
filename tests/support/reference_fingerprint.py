"""Fingerprints, key hashes and samples in Python, bit for bit those of the audit in Spark.

`mm2slo_core.audit.fingerprint` describes the bytes and the draw.
"""

import hmac
from collections.abc import Iterator, Sequence
from struct import Struct

from xxhash import xxh64_intdigest

from mm2slo_core.audit.fingerprint import (
    HEADER,
    KEYED_DIGITS,
    NULL_FLAGS,
    STEPS,
    Identity,
    Sample,
)

SEED = 42  # Spark's of `xxhash64`
_INT = Struct("<i").pack
_LONG = Struct("<q").pack
_PRESENT, _NULL = _INT(0), _INT(1)
Header = tuple[str, bytes | None]


def fingerprint(
    identity: Identity,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Header] | None,
    timestamp_ms: int,
) -> int:
    """Hash the parts that *identity* covers; signed 64 bits. The module has the bytes."""
    # Header order is part of the record in Kafka (KIP-82), and MirrorMaker 2 keeps it.
    kept = [h for h in headers or () if h[0] not in identity.ignored_headers]
    if identity.hmac_key is not None:
        message = b"".join(_keyed_parts(identity, key, value, kept, timestamp_ms))
        return _keyed(identity.hmac_key, message)
    seed = SEED
    for column in _columns(identity, key, value, kept, timestamp_ms):
        seed = xxh64_intdigest(column, seed)
    return _signed(seed)


def key_hash(key: bytes | None, hmac_key: bytes | None = None) -> int | None:
    """Hash a key; None: the record has no key.

    Spark: `xxhash64(key)`; with *hmac_key* the keyed hash of `field(key)`. Spark must check for
    null first, since its `xxhash64(null)` is 42.
    """
    if key is None:
        return None
    if hmac_key is not None:
        return _keyed(hmac_key, _field(key))
    return _signed(xxh64_intdigest(key, SEED))


def masked_hashes(
    identity: Identity, key: bytes | None, value: bytes | None, headers: Sequence[Header] | None
) -> tuple[int, ...]:
    """Hash the distinct contents of each part of `Identity.must_change`, each with its part.

    Null, empty and absent ones are left out; a header may occur several times.
    """
    parts = [("key", key), ("value", value)]
    parts += [(f"{HEADER}{name}", content) for name, content in headers or ()]
    found = [
        _part_hash(name, content, identity.hmac_key)
        for part in identity.must_change
        for name, content in parts
        if name == part and content
    ]
    return tuple(dict.fromkeys(found))


def _part_hash(name: str, content: bytes, hmac_key: bytes | None) -> int:
    if hmac_key is not None:
        return _keyed(hmac_key, _field(name.encode()) + _field(content))
    return _signed(xxh64_intdigest(content, xxh64_intdigest(name.encode(), SEED)))


def chained(*longs: int) -> int:
    """Return Spark's `xxhash64` of bigint columns; signed 64 bits."""
    seed = SEED
    for each in longs:
        seed = xxh64_intdigest(_LONG(each), seed)
    return _signed(seed)


def _columns(
    identity: Identity,
    key: bytes | None,
    value: bytes | None,
    kept: Sequence[Header],
    timestamp_ms: int,
) -> Iterator[bytes]:
    if identity.key:
        yield from _nullable(key)
    if identity.value:
        yield from _nullable(value)
    if identity.timestamp:
        yield _LONG(timestamp_ms)
    if identity.headers:
        yield _INT(len(kept))
        flagged = enumerate(kept[:NULL_FLAGS])
        yield _INT(sum(1 << place for place, (_, content) in flagged if content is None))
        for name, content in kept:
            yield name.encode()
            if content is not None:
                yield content


def _nullable(part: bytes | None) -> tuple[bytes, bytes]:
    return (_NULL, b"") if part is None else (_PRESENT, part)


def _keyed_parts(
    identity: Identity,
    key: bytes | None,
    value: bytes | None,
    kept: Sequence[Header],
    timestamp_ms: int,
) -> Iterator[bytes]:
    if identity.key:
        yield _field(key)
    if identity.value:
        yield _field(value)
    if identity.timestamp:
        yield b"%d;" % timestamp_ms
    if identity.headers:
        yield b"%d;" % len(kept)
        for name, content in kept:
            yield _field(name.encode())
            yield _field(content)


def _field(part: bytes | None) -> bytes:
    return b"-" if part is None else b"%d:%b" % (len(part), part)


def _keyed(hmac_key: bytes, message: bytes) -> int:
    return int(hmac.digest(hmac_key, message, "sha256").hex()[:KEYED_DIGITS], 16)


def _signed(unsigned: int) -> int:
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


def keeps_record(sample: Sample, fingerprint: int) -> bool:
    """Return whether a record with this *fingerprint* is in the record stratum."""
    # Python's % is Spark's `pmod`, never negative; Spark's own % has the sign of the dividend.
    return sample.census or chained(sample.salt, fingerprint) % STEPS < sample.record_threshold


def keeps_key(sample: Sample, key_hash: int | None) -> bool:
    """Return whether a record with this *key_hash* is in the key stratum.

    Records without a key are in it only in a census.
    """
    if sample.census:
        return True
    # Order and affinity are properties of keys; records without one are no cluster to draw.
    if key_hash is None:
        return False
    return chained(sample.salt, key_hash) % STEPS < sample.key_threshold
