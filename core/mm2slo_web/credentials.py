"""Credentials of an Authorization header: HTTP Basic (RFC 7617) and bearer tokens (RFC 6750)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def split_authorization(header: str | None) -> tuple[str, str]:
    """The scheme in lower case, and what follows it."""
    scheme, _, credentials = (header or "").strip().partition(" ")
    return scheme.lower(), credentials.strip()


def basic_credentials(text: str) -> tuple[bytes, bytes] | None:
    """User and password; None if *text* is malformed."""
    try:
        user, colon, password = base64.b64decode(text, validate=True).partition(b":")
        user.decode()
    except (binascii.Error, ValueError):
        return None
    return (user, password) if colon else None


def matching_digest(token: str | bytes, digests: Iterable[str]) -> str | None:
    """The one of the SHA-256 *digests* (hex, lower case) that is the token's."""
    content = token.encode("utf-8", "surrogatepass") if isinstance(token, str) else token
    own = hashlib.sha256(content).hexdigest()
    # All are compared, so that the response time does not reveal which one matched.
    matching = [each for each in digests if hmac.compare_digest(own, each)]
    return matching[0] if matching else None
