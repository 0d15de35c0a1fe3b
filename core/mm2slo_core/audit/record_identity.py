"""What makes two records the same record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


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


def common_identity(identities: Sequence[Identity]) -> Identity:
    """What all of *identities*, at least one, compare; keyed as soon as one of them is."""
    headers = all(each.headers for each in identities)
    ignored = {name for each in identities for name in each.ignored_headers}
    return Identity(
        key=all(each.key for each in identities),
        value=all(each.value for each in identities),
        headers=headers,
        timestamp=all(each.timestamp for each in identities),
        ignored_headers=tuple(sorted(ignored)) if headers else (),
        hmac_key=next((each.hmac_key for each in identities if each.hmac_key is not None), None),
    )
