"""What makes two records the same record."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Identity:
    """Which parts of a record its fingerprint covers. Topic and partition never are.

    Leave out what the flow changes on purpose: masked values, added headers, a timestamp that
    the target sets itself (LogAppendTime).
    """

    key: bool = True
    value: bool = True
    headers: bool = True
    timestamp: bool = True
    ignored_headers: tuple[str, ...] = ()
    hmac_key: bytes | None = field(default=None, repr=False)
    """Keyed hashing, HMAC-SHA-256, for payloads that could be guessed; None: XXH64."""

    def without_timestamp(self) -> Identity:
        """The same, for a target that stamps records itself."""
        return Identity(
            key=self.key,
            value=self.value,
            headers=self.headers,
            timestamp=False,
            ignored_headers=self.ignored_headers,
            hmac_key=self.hmac_key,
        )
