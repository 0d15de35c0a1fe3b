"""The token file, reloaded when it changes.

An invalid new file never grants access: only tokens that it still lists and that were valid before
stay valid. A missing file revokes every token.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mm2slo_core.user_errors import UserError
from mm2slo_report.web.tokens import Scope, Token, read_tokens
from mm2slo_web.reloaded_access import FileStamp

if TYPE_CHECKING:
    from collections.abc import Callable

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
    def valid(self) -> tuple[Token, ...]:
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

    def _read(self) -> tuple[tuple[Token, ...], str]:
        try:
            text = self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8 text"
            return (), (
                f"cannot read report.tokens_file {self._name!r}: {reason}; expected a token file"
            )
        return read_tokens(text, self._name)


def _restrict(before: tuple[Token, ...], listed: tuple[Token, ...]) -> tuple[Token, ...]:
    """The *listed* tokens that were valid *before*, with the narrower scope of the two."""
    known = {each.digest: each for each in before}
    return tuple(_narrower(known[each.digest], each) for each in listed if each.digest in known)


def _narrower(before: Token, listed: Token) -> Token:
    flows = listed.flows if before.flows is None else before.flows
    if before.flows is not None and listed.flows is not None:
        flows = tuple(each for each in listed.flows if each in before.flows)
    scope = Scope.READ if before.scope is Scope.READ else listed.scope
    return replace(listed, scope=scope, flows=flows)
