"""Who may read: HTTP Basic (RFC 7617) with bcrypt hashes, and bearer tokens (RFC 6750)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import threading
from typing import TYPE_CHECKING

import bcrypt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_exporter.web.config import Hidden, WebConfig

# bcrypt reads no further than this; what is longer cannot be the password.
_LONGEST_PASSWORD = 72


class Authenticator:
    """Checks Authorization headers. A password that was right is checked by a digest after.

    The digest is keyed with a key of this process that is never stored, so memory holds neither
    password nor anything that could be tried elsewhere.
    """

    def __init__(self, users: Mapping[str, Hidden], token_digests: tuple[Hidden, ...]) -> None:
        self._users = {name: hidden.value.encode() for name, hidden in users.items()}
        self._tokens = [hidden.value.encode() for hidden in token_digests]
        self._key = secrets.token_bytes(32)
        self._right: dict[str, bytes] = {}
        # One at a time: wrong passwords must not take every core from the collectors.
        self._bcrypt_turn = threading.Lock()

    @classmethod
    def of(cls, config: WebConfig) -> Authenticator:
        """The users and tokens of a web configuration."""
        return cls(config.basic_auth_users, config.bearer_tokens_sha256)

    @property
    def challenges(self) -> tuple[tuple[str, str], ...]:
        """The WWW-Authenticate headers; none when everyone may read."""
        basic = (("WWW-Authenticate", 'Basic realm="mm2slo", charset="UTF-8"'),)
        bearer = (("WWW-Authenticate", 'Bearer realm="mm2slo"'),)
        return (basic if self._users else ()) + (bearer if self._tokens else ())

    def allows(self, authorization: str | None) -> bool:
        """Whether a request with this header may read."""
        if not self._users and not self._tokens:
            return True
        scheme, _, credentials = (authorization or "").strip().partition(" ")
        if scheme.lower() == "basic" and self._users:
            return self._basic(credentials.strip())
        if scheme.lower() == "bearer" and self._tokens:
            return self._bearer(credentials.strip())
        return False

    def _bearer(self, token: str) -> bool:
        digest = hashlib.sha256(token.encode()).hexdigest().encode()
        # Every token is compared, so that the response time does not reveal which one matched.
        return sum(hmac.compare_digest(digest, known) for known in self._tokens) > 0

    def _basic(self, credentials: str) -> bool:
        try:
            user, colon, password = base64.b64decode(credentials, validate=True).partition(b":")
            name = user.decode()
        except (binascii.Error, UnicodeDecodeError, ValueError):
            return False
        if not colon or len(password) > _LONGEST_PASSWORD:
            return False
        known = self._users.get(name)
        digest = hmac.digest(self._key, user + b"\0" + password, "sha256")
        if known is not None and hmac.compare_digest(digest, self._right.get(name, b"")):
            return True
        # Unknown users take as long as known ones, so that the response time does not reveal them.
        with self._bcrypt_turn:
            right = bcrypt.checkpw(password, known or next(iter(self._users.values())))
        if known is None or not right:
            return False
        self._right[name] = digest
        return True
