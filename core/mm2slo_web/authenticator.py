"""Who may read: users with bcrypt hashes, and bearer tokens (RFC 7617 and RFC 6750)."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Iterable, Mapping
from typing import Final

import bcrypt

from mm2slo_core.config.secret import Secret

# bcrypt reads no further than this; what is longer cannot be the password.
_LONGEST_PASSWORD: Final = 72
_MOST_OF_PEER: Final = 8
_MOST_PEERS: Final = 64


class TooManyLoginsError(Exception):
    """Passwords of other requests are being checked; the client may try again."""


class _Peer:
    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.waiting = 0


class Authenticator:
    """Checks Authorization headers. A password that was right is checked by a digest after.

    The digest is keyed with a key of this process that is never stored, so memory holds neither
    password nor anything that could be tried elsewhere.
    """

    def __init__(
        self,
        users: Mapping[str, Secret],
        token_digests: tuple[Secret, ...],
        previous: Authenticator | None = None,
    ) -> None:
        """*previous*: keep what it knows of users whose hash is the same, and its queue."""
        self._users = {name.encode(): known.reveal().encode() for name, known in users.items()}
        self._tokens = tuple(each.reveal() for each in token_digests)
        self._key = secrets.token_bytes(32)
        self._right: dict[bytes, bytes] = {}
        # One at a time: wrong passwords must not take every core from the collectors.
        self._bcrypt_turn = asyncio.Lock()
        self._peers: dict[str, _Peer] = {}
        if previous is not None:
            self._key, self._peers = previous._key, previous._peers
            self._bcrypt_turn = previous._bcrypt_turn
            same = self._users.items() & previous._users.items()
            self._right = {
                user: previous._right[user] for user, _ in same if user in previous._right
            }

    @property
    def challenges(self) -> tuple[tuple[bytes, bytes], ...]:
        """The WWW-Authenticate headers; none when everyone may read."""
        basic = (b"www-authenticate", b'Basic realm="mm2slo", charset="UTF-8"')
        bearer = (b"www-authenticate", b'Bearer realm="mm2slo"')
        return ((basic,) if self._users else ()) + ((bearer,) if self._tokens else ())

    def recognizes(self, authorization: str | None) -> bool:
        """Whether a request with this header may read, as far as that needs no bcrypt."""
        if not self._users and not self._tokens:
            return True
        scheme, credentials = split_authorization(authorization)
        if scheme == "basic":
            user, password = basic_credentials(credentials) or (b"", b"")
            digest = self._digest(user, password)
            return hmac.compare_digest(digest, self._right.get(user, b""))
        return scheme == "bearer" and matching_digest(credentials, self._tokens) is not None

    async def allows(self, authorization: str | None, peer: str = "::") -> bool:
        """Whether a request with this header may read. Raises TooManyLoginsError."""
        if self.recognizes(authorization):
            return True
        scheme, credentials = split_authorization(authorization)
        found = basic_credentials(credentials) if scheme == "basic" and self._users else None
        if found is None or len(found[1]) > _LONGEST_PASSWORD:
            return False
        user, password = found
        known = self._users.get(user)
        # Unknown users take as long as known ones, so that the response time does not reveal them.
        some = known or next(iter(self._users.values()))
        right = await self._check(password, some, _network(peer))
        if known is None or not right:
            return False
        self._right[user] = self._digest(user, password)
        return True

    def _digest(self, user: bytes, password: bytes) -> bytes:
        return hmac.digest(self._key, user + b"\0" + password, "sha256")

    async def _check(self, password: bytes, known: bytes, network: str) -> bool:
        if network not in self._peers and len(self._peers) >= _MOST_PEERS:
            raise TooManyLoginsError
        peer = self._peers.setdefault(network, _Peer())
        if peer.waiting >= _MOST_OF_PEER:
            raise TooManyLoginsError
        peer.waiting += 1
        try:
            # Only one request of each peer waits with those of others, which take turns.
            async with peer.turn, self._bcrypt_turn:
                return await asyncio.to_thread(bcrypt.checkpw, password, known)
        finally:
            peer.waiting -= 1
            if not peer.waiting:
                del self._peers[network]


def _network(peer: str) -> str:
    """The address of a peer; the first half of an IPv6 address, as it may choose the rest."""
    address = ipaddress.ip_address(peer.partition("%")[0])
    is_short = isinstance(address, ipaddress.IPv4Address) or address.ipv4_mapped
    return peer if is_short else str(int(address) >> 64)


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
