"""The word that was most likely meant."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The one of *known* that *word* was most likely meant to be."""
    candidates = list(known)
    # Short aliases are too short for a ratio: `ue` and `EU` are `eu` by their letters.
    for candidate in candidates:
        if sorted(candidate.casefold()) == sorted(word.casefold()):
            return candidate
    return next(iter(difflib.get_close_matches(word, candidates, n=1)), None)
