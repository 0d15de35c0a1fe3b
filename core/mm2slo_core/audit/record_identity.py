"""The parts of a record that identify it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

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
