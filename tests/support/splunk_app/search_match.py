"""Which events the conditions of a search select: the part before its first `|`.

Terms as the app uses them: macros, `field=value` with `*`, `field IN (...)`, quoted texts, AND, OR,
NOT and parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from splunk_app.conf_file import Conf

if TYPE_CHECKING:
    Matcher = Callable[[Mapping[str, Any]], bool]

_MACRO = re.compile(r"`(\w+)`")
_TOKEN = re.compile(
    r'\s*(?:(\()|(\))|([\w.]+)\s+IN\s+\(([^)]*)\)|([\w.]+)=("[^"]*"|[^\s)]+)|"([^"]*)"|(\w+))'
)


def search_condition(search: str, macros: Conf) -> Matcher:
    """Whether an envelope of HEC is selected by *search*. Raises ValueError for an unknown term."""
    text = re.split(r'\|(?=(?:[^"]*"[^"]*")*[^"]*$)', search)[0].removeprefix("search ").strip()
    while _MACRO.search(text):
        text = _MACRO.sub(lambda found: macros[found[1]]["definition"], text)
    return _Conditions(text).read()


class _Conditions:
    """Splunk gives OR a higher precedence than AND."""

    def __init__(self, text: str) -> None:
        self._tokens = []
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ValueError(f"unknown term {text[position:]!r}")
            self._tokens.append(match)
            position = match.end()

    def read(self) -> Matcher:
        groups = [self._read_group()]
        while self._tokens and not self._tokens[0][2]:
            self._skip("AND")
            groups.append(self._read_group())
        return lambda event: all(each(event) for each in groups)

    def _read_group(self) -> Matcher:
        terms = [self._read_term()]
        while self._skip("OR"):
            terms.append(self._read_term())
        return lambda event: any(each(event) for each in terms)

    def _read_term(self) -> Matcher:
        if self._skip("NOT"):
            term = self._read_term()
            return lambda event: not term(event)
        token = self._tokens.pop(0)
        _, _, listed, values, field, value, quoted, name = token.groups()
        if token[1]:
            inner = self.read()
            self._tokens.pop(0)
            return inner
        if listed or field:
            texts = values.split(",") if listed else [value]
            patterns = [each.strip().strip('"') for each in texts]
            return lambda event: _has_value(event, listed or field, patterns)
        if name:
            raise ValueError(f"unknown term {name!r}")
        return lambda event: quoted.lower() in str(event["event"]).lower()

    def _skip(self, name: str) -> bool:
        if self._tokens and self._tokens[0][8] == name:
            self._tokens.pop(0)
            return True
        return False


def _has_value(event: Mapping[str, Any], field: str, patterns: list[str]) -> bool:
    value = event.get(field, event["event"].get(field))
    return value is not None and any(
        fnmatchcase(str(value).lower(), each.lower()) for each in patterns
    )
