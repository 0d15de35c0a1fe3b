"""Bearer tokens (RFC 6750) by their digests, from a file.

A line is `<SHA-256 of the token, 64 hex digits> <scope> <name>`, where the scope is `read` or
`write` (which may read, too); `#` starts a comment. Browsers, which have no bearer tokens, may
send one as the password of HTTP Basic, to read.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mm2slo_core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

_LINE: Final = re.compile(
    r"(?P<digest>[0-9A-Fa-f]{64})\s+(?P<scope>read|write)(?:\s+(?P<name>\S.*))?", re.ASCII
)


class Scope(StrEnum):
    """What a token is good for."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Token:
    """A token by its digest, which no message shows."""

    digest: str = field(repr=False)
    scope: Scope
    name: str


def parse_tokens(text: str, file: str) -> tuple[Token, ...]:
    """The tokens that *text* lists; *file* is its name. Raises UserError that shows no line."""
    found, problem = read_tokens(text, file)
    if problem:
        raise UserError(problem)
    return found


def read_tokens(text: str, file: str) -> tuple[tuple[Token, ...], str]:
    """The tokens of those lines that can be read, and the first thing that is wrong, or nothing."""
    found: dict[str, Token] = {}
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].strip()
        if not words:
            continue
        match = _LINE.fullmatch(words)
        if match is None:
            problems.append(
                f"{file}, line {number}: expected the 64 hex digits of a token's SHA-256, then "
                "read or write, then a name; make the digits with: printf %s TOKEN | sha256sum"
            )
            continue
        digest = match["digest"].lower()
        if digest in found:
            problems.append(f"{file}, line {number}: the token is listed before: remove one line")
            continue
        found[digest] = Token(digest, Scope(match["scope"]), match["name"] or f"line {number}")
    if not found and not problems:
        problems.append(
            f"{file} lists no token, so nobody could ask anything: add a line, or remove "
            "report.tokens_file"
        )
    return tuple(found.values()), next(iter(problems), "")


def find(tokens: Iterable[Token], authorization: str | None, *, basic: bool) -> Token | None:
    """Of *tokens* that in an Authorization header; with *basic* also as a password."""
    scheme, _, credentials = (authorization or "").strip().partition(" ")
    shown = credentials.strip()
    if scheme.lower() == "basic" and basic:
        shown = _password(shown)
    elif scheme.lower() != "bearer":
        return None
    digest = hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()
    # Every one is compared, so that the time does not tell which it was.
    right = [each for each in tokens if hmac.compare_digest(digest, each.digest)]
    return right[0] if right else None


def _password(credentials: str) -> str:
    try:
        return base64.b64decode(credentials, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""
