"""The fingerprint of a record, bit for bit the same in Python and in Spark.

**Unkeyed**: chained XXH64. The first column is hashed with seed 42, each further one with the
previous hash as seed; the last hash, as a signed number, is the fingerprint. That is Spark's
`xxhash64(c1, c2, ...)`. Columns, in this order, each only if `Identity` covers the part:

    key        int(key is null)      int, 4 bytes little endian
               coalesce(key, X'')    its bytes
    value      int(value is null)    int, 4 bytes little endian
               coalesce(value, X'')
    timestamp  epoch ms              long, 8 bytes little endian
    headers    their number          int; without ignored headers; 0 for null
               null values           int; bit i is set if the value of header i is null, i < 16
               per header, in order: name (UTF-8 bytes), value unless it is null

In Spark the last line is `kept = filter(headers, h -> h.key not in (ignored))` itself, an array of
structs of name and value. Null flags and the number of headers are explicit because Spark skips
nulls and empty arrays; beyond 16 headers a null value is not distinguished from that of a
neighbour.

**Keyed**: HMAC-SHA-256 of one unambiguous byte string; the first 15 hexadecimal digits (60 bits) of
the result, as a number. The string concatenates the same parts in the same order:

    field(x)   `-` for null, else its length in decimal digits, `:`, its bytes
    key        field(key)
    value      field(value)
    timestamp  epoch ms in decimal digits, `;`
    headers    number of kept headers in decimal digits, `;`, then field(name) field(value) of each

In Spark, with K the HMAC key as of RFC 2104 (hashed when longer than 64 bytes, padded with zeros to
64), `ipad = K xor 0x36...` and `opad = K xor 0x5c...` as binary literals:
`inner = unhex(sha2(concat(ipad, message), 256))`, `outer = sha2(concat(opad, inner), 256)`,
`cast(conv(substr(outer, 1, 15), 16, 10) as bigint)`; a length is
`cast(concat(length(x), ':') as binary)`; headers are joined by `aggregate(..., X'', concat)`.
"""

from __future__ import annotations

import hmac
from struct import Struct
from typing import TYPE_CHECKING, Final

from xxhash import xxh64_intdigest

from mm2slo_core.audit.record_identity import HEADER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mm2slo_core.audit.record_identity import Identity

SEED: Final = 42
"""Spark's seed of `xxhash64`."""
KEYED_DIGITS: Final = 15
"""Hexadecimal digits of the HMAC that are kept, to fit a signed 64-bit number."""
NULL_FLAGS: Final = 16
"""Headers of a record whose null values have a flag of their own."""

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
    """Hash the parts that *identity* covers; signed 64 bits. The module docstring has the bytes."""
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
) -> tuple[int | None, ...]:
    """Hash each part of `Identity.must_change` like a key; None: null, empty or absent.

    Of several headers of one name it is the first.
    """
    parts: dict[str, bytes | None] = {"key": key, "value": value}
    for name, content in reversed(headers or ()):
        parts[f"{HEADER}{name}"] = content
    return tuple(
        key_hash(parts.get(part) or None, identity.hmac_key) for part in identity.must_change
    )


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
