"""Bearer tokens (RFC 6750), listed in a file by their digests and reloaded when it changes.

Each line is `<SHA-256 of the token, 64 hex digits> <scope> <name>`; the scope is `read` or `write`
(which includes read), for all flows or, as in `read:us->eu,us->*`, for those that match a pattern;
`#` starts a comment. Browsers send a token as the password of HTTP Basic, for reading only.
An invalid new file never grants access: only tokens that it still lists and that were valid before
stay valid. A missing file revokes every token.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from mm2slo_core.objectives.exclusion import matching_flows
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_web.authenticator import basic_credentials, matching_digest, split_authorization
from mm2slo_web.web_access import FileStamp

logger = logging.getLogger(__name__)

_CHECK_INTERVAL: Final = 1.0
"""Seconds."""


class TokenFile:
    """The tokens of the file *name*. Raises UserError when the first load fails. Thread-safe."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._path = Path(name)
        self._clock = clock
        self._lock = threading.Lock()
        self._stamp = FileStamp.of(self._path)
        self._checked_at = clock()
        self._tokens, problem = self._read()
        if problem:
            raise UserError(problem)

    @property
    def valid(self) -> tuple[AccessToken, ...]:
        """Tokens that currently grant access."""
        with self._lock:
            now = self._clock()
            if now - self._checked_at >= _CHECK_INTERVAL:
                self._checked_at = now
                self._refresh()
            return self._tokens

    def _refresh(self) -> None:
        stamp = FileStamp.of(self._path)
        if stamp == self._stamp:
            return
        # Stamp before reading: the next check sees a change made in between.
        self._stamp = stamp
        found, problem = self._read()
        if problem:
            found = _restrict(self._tokens, found)
            logger.error(
                "%s; keeping %d of the %d previously loaded tokens until the file is fixed",
                problem, len(found), len(self._tokens),
            )  # fmt: skip
        else:
            logger.info("reloaded %s: %d tokens", self._name, len(found))
        self._tokens = found

    def _read(self) -> tuple[tuple[AccessToken, ...], str]:
        try:
            text = self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8 text"
            return (), (
                f"cannot read report.tokens_file {self._name!r}: {reason}; expected a token file"
            )
        return read_tokens(text, self._name)


def _restrict(
    before: tuple[AccessToken, ...], listed: tuple[AccessToken, ...]
) -> tuple[AccessToken, ...]:
    """The *listed* tokens that were valid *before*, with the narrower scope of the two."""
    known = {each.digest: each for each in before}
    return tuple(_narrower(known[each.digest], each) for each in listed if each.digest in known)


def _narrower(before: AccessToken, listed: AccessToken) -> AccessToken:
    flows = listed.flows if before.flows is None else before.flows
    if before.flows is not None and listed.flows is not None:
        flows = tuple(each for each in listed.flows if each in before.flows)
    scope = Scope.READ if before.scope is Scope.READ else listed.scope
    return replace(listed, scope=scope, flows=flows)


_LINE: Final = re.compile(
    r"(?P<digest>[0-9A-Fa-f]{64})\s+(?P<scope>read|write)(?::(?P<flows>\S+))?(?:\s+(?P<name>\S.*))?",
    re.ASCII,
)
_ARROW: Final = "->"


class Scope(StrEnum):
    """What a token permits."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token by its digest, which is never logged."""

    digest: str = field(repr=False)
    scope: Scope
    name: str
    flows: tuple[str, ...] | None = None
    """Patterns of labels, such as `us->eu` and `us->*`; None: all flows."""


def read_tokens(text: str, file: str) -> tuple[tuple[AccessToken, ...], str]:
    """The tokens of the valid lines, and the first problem, or an empty string.

    The problem never quotes a line, which may hold a token.
    """
    found: dict[str, AccessToken] = {}
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        match = _LINE.fullmatch(content)
        if match is None:
            problems.append(
                f"{file}, line {number}: expected the 64 hex digits of a token's SHA-256, then "
                "read or write, then a name; make the digits with: printf %s TOKEN | sha256sum"
            )
            continue
        flows = None if match["flows"] is None else tuple(match["flows"].split(","))
        # A pattern in place of the name would grant access to all flows.
        if _ARROW in (match["name"] or "") or not all(_is_pattern(each) for each in flows or ()):
            problems.append(
                f"{file}, line {number}: invalid flows; expected patterns separated by commas, "
                "after a colon and without spaces, such as read:us->eu,us->*"
            )
            continue
        digest = match["digest"].lower()
        if digest in found:
            problems.append(f"{file}, line {number}: duplicate token; remove one of the lines")
            continue
        name = match["name"] or f"line {number}"
        found[digest] = AccessToken(digest, Scope(match["scope"]), name, flows)
    if not found and not problems:
        problems.append(
            f"{file} lists no token, so every request would be rejected: add a line, or remove "
            "report.tokens_file"
        )
    return tuple(found.values()), next(iter(problems), "")


def unmatched_patterns(tokens: Iterable[AccessToken], flows: Collection[Flow]) -> Iterator[str]:
    """A sentence for each pattern of a token that matches none of the configured *flows*."""
    for token in tokens:
        for pattern in token.flows or ():
            if not matching_flows((pattern,), flows):
                yield (
                    f"report.tokens_file: {pattern} of token {token.name!r} matches no configured "
                    f"flow, so it grants nothing; expected a pattern such as {next(iter(flows))}"
                )


def _is_pattern(text: str) -> bool:
    return text == "*" or all(text.partition(_ARROW))


def find_token(
    tokens: Iterable[AccessToken], authorization: str | None, *, basic: bool
) -> AccessToken | None:
    """The token in an Authorization header; with *basic* also as a Basic password."""
    scheme, shown = split_authorization(authorization)
    by_digest = {each.digest: each for each in tokens}
    if scheme == "basic" and basic:
        _, password = basic_credentials(shown) or (b"", b"")
        digest = matching_digest(password, by_digest)
    else:
        digest = matching_digest(shown, by_digest) if scheme == "bearer" else None
    return None if digest is None else by_digest[digest]
