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
    letters = [each for each in candidates if sorted(each.casefold()) == sorted(name.casefold())]
    close = difflib.get_close_matches(
        name, letters or candidates, n=1, cutoff=0.0 if letters else 0.6
    )
    return next(iter(close), None)


def suggest_typo(name: str, known: Iterable[str]) -> str | None:
    """The one of *known* that differs from *name* by what a typo explains.

    That is one character replaced or swapped with the next, or up to two added or removed.
    """
    close = next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.75)), "")
    blocks = difflib.SequenceMatcher(None, name, close).get_matching_blocks()
    same = sum(block.size for block in blocks)
    return close if close and len(name) + len(close) - 2 * same <= 2 else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The next step for an unknown *name*; *otherwise* if none of *known* is similar."""
    close = suggest(name, known)
    return f"did you mean {close!r}?" if close else otherwise
