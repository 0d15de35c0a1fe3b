"""Suggestions for misspelled names."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def suggest(name: str, known: Iterable[str]) -> str | None:
    """The most similar of *known*, or None if none is similar."""
    candidates = list(known)
    # Aliases may be too short for difflib: `ue` and `EU` are matched to `eu` by their letters.
    for candidate in candidates:
        if sorted(candidate.casefold()) == sorted(name.casefold()):
            return candidate
    return next(iter(difflib.get_close_matches(name, candidates, n=1)), None)


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The next step for an unknown *name*; *otherwise* if none of *known* is similar."""
    close = suggest(name, known)
    return f"did you mean {close!r}?" if close else otherwise
