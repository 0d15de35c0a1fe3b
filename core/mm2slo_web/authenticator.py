"""Who may read: users with bcrypt hashes, and bearer tokens."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from typing import TYPE_CHECKING, Final

import bcrypt

from mm2slo_web.credentials import basic_credentials, matching_digest, split_authorization

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.secret import Secret

# bcrypt reads no further than this; what is longer cannot be the password.
_LONGEST_PASSWORD: Final = 72
_MAX_WAITING: Final = 8


class TooManyLoginsError(Exception):
    """Passwords of other requests are being checked; the client may try again."""


class Authenticator:
    """Checks Authorization headers. A password that was right is checked by a digest after.

    The digest is keyed with a key of this process that is never stored, so memory holds neither
    password nor anything that could be tried elsewhere.
    """

    def __init__(self, users: Mapping[str, Secret], token_digests: tuple[Secret, ...]) -> None:
        self._users = {name.encode(): known.reveal().encode() for name, known in users.items()}
        self._tokens = tuple(each.reveal() for each in token_digests)
        self._key = secrets.token_bytes(32)
        self._right: dict[bytes, bytes] = {}
        # One at a time: wrong passwords must not take every core from the collectors.
        self._bcrypt_turn = asyncio.Lock()
        self._waiting = 0

    @property
    def challenges(self) -> tuple[tuple[bytes, bytes], ...]:
        """The WWW-Authenticate headers; none when everyone may read."""
        basic = (b"www-authenticate", b'Basic realm="mm2slo", charset="UTF-8"')
        bearer = (b"www-authenticate", b'Bearer realm="mm2slo"')
        return ((basic,) if self._users else ()) + ((bearer,) if self._tokens else ())

    async def allows(self, authorization: str | None) -> bool:
        """Whether a request with this header may read. Raises TooManyLoginsError."""
        if not self._users and not self._tokens:
            return True
        scheme, credentials = split_authorization(authorization)
        if scheme == "basic" and self._users:
            return await self._basic(credentials)
        return scheme == "bearer" and matching_digest(credentials, self._tokens) is not None

    async def _basic(self, credentials: str) -> bool:
        user, password = basic_credentials(credentials) or (b"", None)
        if password is None or len(password) > _LONGEST_PASSWORD:
            return False
        known = self._users.get(user)
        digest = hmac.digest(self._key, user + b"\0" + password, "sha256")
        if known is not None and hmac.compare_digest(digest, self._right.get(user, b"")):
            return True
        # Unknown users take as long as known ones, so that the response time does not reveal them.
        right = await self._check(password, known or next(iter(self._users.values())))
        if known is None or not right:
            return False
        self._right[user] = digest
        return True

    async def _check(self, password: bytes, known: bytes) -> bool:
        if self._waiting >= _MAX_WAITING:
            raise TooManyLoginsError
        self._waiting += 1
        try:
            async with self._bcrypt_turn:
                return await asyncio.to_thread(bcrypt.checkpw, password, known)
        finally:
            self._waiting -= 1
