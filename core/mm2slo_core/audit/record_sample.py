"""Sampling by hash, which selects the same records on both sides.

There are two strata: records by fingerprint (loss, duplicates, latency; independent draws) and keys
by key hash (order and affinity; all records of a key). A record is kept if

    pmod(xxhash64(salt, hash), 2^20) < threshold

with salt and hash as bigint, the same in Spark. Samples with the same salt are nested: a smaller
rate keeps a subset, so windows that were audited at different rates are comparable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from mm2slo_core.audit.fingerprint import chained

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

    def keeps_record(self, fingerprint: int) -> bool:
        """Return whether a record with this *fingerprint* is in the record stratum."""
        return self.census or chained(self.salt, fingerprint) % STEPS < self.record_threshold

    def keeps_key(self, key_hash: int | None) -> bool:
        """Return whether a record with this *key_hash* is in the key stratum.

        Records without a key are in it only in a census.
        """
        if self.census:
            return True
        if key_hash is None:
            return False
        return chained(self.salt, key_hash) % STEPS < self.key_threshold
