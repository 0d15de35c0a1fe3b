"""Parses `sasl.jaas.config` as Kafka does.

Tokens as of `java.io.StreamTokenizer`, grammar as of Kafka's `JaasConfig` and `JaasContext`. A
mistake may cut a password at any place, so errors give positions and never show text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# A number is neither a name nor a mark; a / starts a comment, with or without a second one.
_TOKEN: Final = re.compile(
    r"""
    (?P<skip>  [\x00-\x20]+ | /\*(?:.*?\*/|.*) | /[^\r\n]* )
  | -?(?:\d+\.?\d*|\.\d*)
  | (?P<name>  [A-Za-z_$\xa0-\U0010ffff][\w.$\xa0-\U0010ffff-]* )
  | (?P<quote> ["'])(?P<text>(?:\\.|(?!(?P=quote))[^\\\r\n])*)(?:(?P=quote))?
  | (?P<mark>  . )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)", re.DOTALL)
_CONTROLS: Final = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_FLAGS: Final = frozenset({"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"})
_END: Final = (None, None)


class JaasError(ValueError):
    """The text is not one login module; the message contains nothing of it."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """A login module: its class, control flag, and options, which contain passwords."""

    name: str
    flag: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str) -> LoginModule:
    """Return the only login module of *text*; raises JaasError."""
    tokens = _tokens(text)
    (name, _), (flag, _) = next(tokens, _END), next(tokens, _END)
    if name is None:
        raise JaasError("does not start with the class of a login module")
    if flag is None or flag.upper() not in _FLAGS:
        raise JaasError("has no control flag, such as required, after the class")
    options: dict[str, str] = {}
    for key, mark in tokens:
        if mark == ";":
            break
        (_, equals), (value, _) = next(tokens, _END), next(tokens, _END)
        if key is None or equals != "=" or value is None:
            raise JaasError(f'has no name="value" as option {len(options) + 1}')
        options[key] = value
    else:
        raise JaasError("does not end with a semicolon")
    if next(tokens, None) is not None:
        raise JaasError("has text after its first semicolon; Kafka allows one login module")
    return LoginModule(name, flag.upper(), options)


def _tokens(text: str) -> Iterator[tuple[str | None, str | None]]:
    """Each token as the value of a name or quoted text, and as another character."""
    for match in _TOKEN.finditer(text):
        if match["skip"] is None:
            quoted = match["text"]
            value = match["name"] if quoted is None else _ESCAPE.sub(_unescape, quoted)
            yield value, match["mark"]


def _unescape(match: re.Match[str]) -> str:
    escaped = match[1]
    return chr(int(escaped, 8)) if escaped[0] in "01234567" else _CONTROLS.get(escaped, escaped)
