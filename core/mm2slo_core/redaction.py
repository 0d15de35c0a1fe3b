"""Removal of secrets from log text, before anything is logged, shipped or stored.

Running all regexes on every event would cost more than everything else together. Literals are
searched in whole blocks of lines instead, and regexes run only where one was found.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from mm2slo_core.secret_patterns import PATTERNS, REDACTED, SECRET_FIELD, SecretPattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CONTROLS: Final = bytes({*range(32), 127} - {*b"\t\n"})
_SEPARATORS: Final = b"._-"
_LOWER: Final = bytes(range(256)).lower()
# JSON may write a letter as \u0070 and `/` as \/; \b and \f are control characters.
_JSON_ESCAPE: Final = re.compile(rb"\\[ub/fr]")
_TERMINAL: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
# In blocks of lines, one search for what several literals share; each costs as much as the others.
_SHARED: Final = ("key", "login")
_RUN: Final = re.compile(r"[A-Za-z0-9]+")


class Redactor:
    """Redacts and counts; one for all files of a process.

    *exact* are secrets that the program itself holds. Shorter ones than three characters are left
    in place: replacing them would garble other text.
    """

    def __init__(self, extra: Iterable[SecretPattern] = (), exact: Iterable[str] = ()) -> None:
        longest_first = sorted(exact, key=len, reverse=True)
        own = (_exact_pattern(secret) for secret in longest_first if len(secret) >= 3)
        self._patterns = (*own, *extra, *PATTERNS)
        self._always = any(not pattern.literals for pattern in self._patterns)
        self._text_literals = {each for pattern in self._patterns for each in pattern.literals}
        self._literals = sorted({_in_blocks(each).encode() for each in self._text_literals})
        self.counts: Counter[str] = Counter()
        """Replaced secrets by the name of their pattern."""

    def suspects(self, texts: Sequence[bytes]) -> set[int]:
        """Return the indexes of the texts that may contain a secret or control characters."""
        if self._always:
            return set(range(len(texts)))
        block = b"\n".join(texts)
        folded = block.translate(_LOWER, _SEPARATORS)
        found = {index for literal in self._literals for index in _lines_with(literal, folded)}
        if b"\\" in block:
            lines = _lines_with(b"\\", folded)
            found |= {index for index in lines if _JSON_ESCAPE.search(texts[index])}
        if len(folded.translate(None, _CONTROLS)) != len(folded):
            found |= {
                index for index, text in enumerate(texts) if text.translate(None, _CONTROLS) != text
            }
        return found

    def redact(self, text: str) -> str:
        """Return *text* without secrets, control characters and terminal sequences."""
        if not text.isprintable():
            text = _TERMINAL.sub("", text)
        folded = text.lower().replace(".", "").replace("_", "").replace("-", "")
        found = {each for each in self._text_literals if each in folded}
        if not self._always and not found:
            return text
        for pattern in self._patterns:
            if not pattern.literals or not found.isdisjoint(pattern.literals):
                text, count = pattern.regex.subn(pattern.replacement, text)
                if count:
                    self.counts[pattern.name] += count
        return text

    def redact_document(self, document: dict[str, object]) -> dict[str, object]:
        """Return *document* without secrets, in names, in values and in fields named as secrets."""
        return self._redact_mapping(document)

    def _redact_mapping(self, document: dict[str, object]) -> dict[str, object]:
        named = str(document.get("name"))  # of `value`, as in the environment of a container
        return {
            self.redact(name): self._redact_field(named if name == "value" else name, value)
            for name, value in document.items()
        }

    def _redact_field(self, name: str, value: object) -> object:
        if value in (None, "", "null", "[hidden]", REDACTED) or isinstance(value, bool):
            return value
        if SECRET_FIELD.search(name):
            self.counts["field"] += 1
            return REDACTED
        return self._redact_value(value)

    def _redact_value(self, value: object) -> object:
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, dict):
            return self._redact_mapping(value)
        if isinstance(value, list):
            return [self._redact_value(each) for each in value]
        return value


def _in_blocks(literal: str) -> str:
    return next((each for each in _SHARED if each in literal), literal)


def _lines_with(literal: bytes, block: bytes) -> list[int]:
    """Return the indexes of the lines of *block* that contain *literal*."""
    found, index, counted = [], 0, 0
    position = block.find(literal)
    while position >= 0:
        index += block.count(b"\n", counted, position)
        found.append(index)
        counted = block.find(b"\n", position)
        if counted < 0:
            break
        position = block.find(literal, counted)
    return found


def _exact_pattern(secret: str) -> SecretPattern:
    """The longest run of letters and digits is the same in JSON as in the text."""
    run = max(_RUN.findall(secret), key=len, default="").lower()
    return SecretPattern("exact", (run,) if run else (), re.compile(re.escape(secret)), REDACTED)
