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
    """The one of *known* that differs from *name* by what a typo explains: two edits at most."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.75)
    distances = {each: _edits(name, each) for each in close}
    best = min(close, key=distances.__getitem__, default=None)
    return best if best and distances[best] <= min(2, len(name) // 3) else None


def _edits(one: str, other: str) -> int:
    """How many characters are added, removed, replaced or swapped with the next."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, right in enumerate(other, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (left != right)))
            if i > 1 and j > 1 and (left, one[i - 2]) == (other[j - 2], right):
                row[-1] = min(row[-1], earlier[j - 2] + 1)
    return row[-1]


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The next step for an unknown *name*; *otherwise* if none of *known* is similar."""
    close = suggest(name, known)
    return f"did you mean {close!r}?" if close else otherwise
