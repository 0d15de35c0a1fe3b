"""The tokens of a file, read again when it changes: who is taken out of it is let in no more.

A new file that cannot be read whole gives nobody more than they had: tokens that it still lists,
and were known before, stay good, and no others. A file that is gone gives nothing to anybody.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.errors import UserError
from mm2slo_report.web.tokens import Scope, Token, read_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

_LOOK_EVERY: Final = 1.0
"""Seconds between two looks."""


class _State(NamedTuple):
    """By what a change of the file is noticed."""

    changed_ns: int
    size: int
    inode: int


class TokenFile:
    """The tokens of *name*. Raises UserError at the start for a file that cannot be used.

    Safe to use from several threads.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._path = Path(name)
        self._clock = clock
        self._lock = threading.Lock()
        self._state = self._look()
        self._looked_at = clock()
        self._tokens, problem = self._read()
        if problem:
            raise UserError(problem)

    @property
    def good(self) -> tuple[Token, ...]:
        """The tokens that let in now."""
        with self._lock:
            now = self._clock()
            if now - self._looked_at >= _LOOK_EVERY:
                self._looked_at = now
                self._refresh()
            return self._tokens

    def _refresh(self) -> None:
        state = self._look()
        if state == self._state:
            return
        # Looked at before it is read: what changes in between is seen at the next look.
        self._state = state
        found, problem = self._read()
        if problem:
            found = _narrowed(self._tokens, found)
            logger.error(
                "%s; until that is mended, no token is good that was not before, and %d of %d are",
                problem, len(found), len(self._tokens),
            )  # fmt: skip
        else:
            logger.info("%s was read again: %d tokens", self._name, len(found))
        self._tokens = found

    def _look(self) -> _State | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return _State(found.st_mtime_ns, found.st_size, found.st_ino)

    def _read(self) -> tuple[tuple[Token, ...], str]:
        try:
            text = self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
            return (), (
                f"report.tokens_file {self._name!r} cannot be read: {reason}; expected a file of "
                "tokens"
            )
        return read_tokens(text, self._name)


def _narrowed(before: tuple[Token, ...], listed: tuple[Token, ...]) -> tuple[Token, ...]:
    """Of *before* those that are *listed* still, with no wider scope than either says."""
    known = {each.digest: each for each in before}
    return tuple(
        Token(each.digest, Scope.READ, each.name)
        if known[each.digest].scope is Scope.READ
        else each
        for each in listed
        if each.digest in known
    )
