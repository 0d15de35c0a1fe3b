"""What identifies a record: the bytes that its fingerprint hashes in Spark; samples by hash.

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
64), `ipad = K xor 0x36...` and `opad = K xor 0x5c...` as binary literals: `inner =
unhex(sha2(concat(ipad, message), 256))`, `outer = sha2(concat(opad, inner), 256)`,
`cast(conv(substr(outer, 1, 15), 16, 10) as bigint)`; a length is `cast(concat(length(x), ':') as
binary)`; headers are joined by `aggregate(..., X'', concat)`.

**Samples**: there are two strata: records by fingerprint (loss, duplicates, latency; independent
draws) and keys by key hash (order and affinity; all records of a key). A record is kept if

    pmod(xxhash64(salt, hash), 2^20) < threshold

with salt and hash as bigint, the same in Spark. Samples with the same salt are nested: a smaller
rate keeps a subset, so windows that were audited at different rates are comparable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

KEYED_DIGITS: Final = 15
"""Hexadecimal digits of the HMAC that are kept, to fit a signed 64-bit number."""

NULL_FLAGS: Final = 16
"""Headers of a record whose null values have a flag of their own."""

HEADER: Final = "header:"
"""Prefix of a header's name in `must_change`."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The parts of a record that its fingerprint covers, never topic and partition.

    Leave out parts that the flow changes by design: masked values, added headers, a timestamp that
    the target sets (LogAppendTime).
    """

    key: bool = True
    value: bool = True
    headers: bool = True
    timestamp: bool = True
    ignored_headers: tuple[str, ...] = ()
    must_change: tuple[str, ...] = ()
    """Parts that the flow masks, so that an unchanged one is a fault: `key`, `value`, or
    `header:` and a name. They are left out of the fingerprint as well."""
    hmac_key: bytes | None = field(default=None, repr=False)
    """Key of HMAC-SHA-256, for payloads that could be guessed; None: XXH64."""

    def without_timestamp(self) -> Identity:
        """Return this identity for a target with LogAppendTime."""
        return replace(self, timestamp=False)

    @property
    def reads_headers(self) -> bool:
        """Whether the headers of records are needed."""
        return self.headers or any(part.startswith(HEADER) for part in self.must_change)


def common_identity(identities: Sequence[Identity]) -> Identity:
    """Return the parts that all *identities* (one or more) cover; keyed if one of them is."""
    headers = all(each.headers for each in identities)
    ignored = {name for each in identities for name in each.ignored_headers}
    return Identity(
        key=all(each.key for each in identities),
        value=all(each.value for each in identities),
        headers=headers,
        timestamp=all(each.timestamp for each in identities),
        ignored_headers=tuple(sorted(ignored)) if headers else (),
        must_change=tuple(sorted({part for each in identities for part in each.must_change})),
        hmac_key=next((each.hmac_key for each in identities if each.hmac_key is not None), None),
    )


STEPS: Final = 1 << 20
"""Rates are multiples of 1 in 2^20."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A rate in (0, 1]; 1 is a census. Another *salt* (signed 64 bits) draws another sample.

    Raises ValueError if *rate* is not in (0, 1] or smaller than 1 in 2^20.
    """

    rate: float
    salt: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ValueError(
                f"sample rate is {self.rate * 100:g}%; expected more than 0% and at most 100%, "
                "as in 1%"
            )
        if self.rate * STEPS < 1:
            raise ValueError(
                f"sample rate is {self.rate * 100:g}%; expected at least 0.0001%, 1 in {STEPS:,}"
            )
        if not -(1 << 63) <= self.salt < 1 << 63:
            raise ValueError(f"sample salt is {self.salt}; expected a signed 64-bit number")

    @classmethod
    def parse(cls, text: str) -> Sample:
        """Parse `1%`, `100%` or `0.01`; ValueError if *text* is no such rate."""
        number, percent = text.strip(), False
        if number.endswith("%"):
            number, percent = number[:-1].strip(), True
        try:
            rate = float(number)
        except ValueError:
            rate = math.nan
        if not math.isfinite(rate):
            raise ValueError(f"{text!r} is not a sample rate; expected 1%, 100% or 0.01")
        return cls(rate / 100 if percent else rate)

    @property
    def census(self) -> bool:
        """Whether all records are audited."""
        return self.record_threshold == STEPS

    @property
    def share(self) -> float:
        """The share of records that is compared."""
        return self.record_threshold / STEPS

    @property
    def record_threshold(self) -> int:
        """Out of 2^20, for fingerprints."""
        return round(self.rate * STEPS)

    @property
    def key_threshold(self) -> int:
        """Out of 2^20, for key hashes."""
        return round(self.rate * STEPS)
