"""Bearer tokens (RFC 6750), listed in a file by their digests.

Each line is `<SHA-256 of the token, 64 hex digits> <scope> <name>`; the scope is `read` or `write`
(which includes read), for all flows or, as in `read:us->eu,us->*`, for those that match a pattern;
`#` starts a comment. Browsers send a token as the password of HTTP Basic, for reading only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.exclusion_document import matching_flows
from mm2slo_core.user_errors import UserError
from mm2slo_web.credentials import basic_credentials, matching_digest, split_authorization

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from mm2slo_core.topology import Flow

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
class Token:
    """A token by its digest, which is never logged."""

    digest: str = field(repr=False)
    scope: Scope
    name: str
    flows: tuple[str, ...] | None = None
    """Patterns of labels, such as `us->eu` and `us->*`; None: all flows."""


def parse_tokens(text: str, file: str) -> tuple[Token, ...]:
    """Parse *text* of *file*. Raises UserError, whose message never quotes a line."""
    found, problem = read_tokens(text, file)
    if problem:
        raise UserError(problem)
    return found


def read_tokens(text: str, file: str) -> tuple[tuple[Token, ...], str]:
    """The tokens of the valid lines, and the first problem, or an empty string."""
    found: dict[str, Token] = {}
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
        found[digest] = Token(digest, Scope(match["scope"]), name, flows)
    if not found and not problems:
        problems.append(
            f"{file} lists no token, so every request would be rejected: add a line, or remove "
            "report.tokens_file"
        )
    return tuple(found.values()), next(iter(problems), "")


def unmatched_patterns(tokens: Iterable[Token], flows: Collection[Flow]) -> Iterator[str]:
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


def find_token(tokens: Iterable[Token], authorization: str | None, *, basic: bool) -> Token | None:
    """The token in an Authorization header; with *basic* also as a Basic password."""
    scheme, shown = split_authorization(authorization)
    by_digest = {each.digest: each for each in tokens}
    if scheme == "basic" and basic:
        _, password = basic_credentials(shown) or (b"", b"")
        digest = matching_digest(password, by_digest)
    else:
        digest = matching_digest(shown, by_digest) if scheme == "bearer" else None
    return None if digest is None else by_digest[digest]
