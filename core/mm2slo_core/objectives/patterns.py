"""Patterns of flows: whether one leaves anything to the next."""

from __future__ import annotations

from fnmatch import fnmatchcase

# No alias holds it, so that only a wildcard matches it.
_ANY = "\0"


def subsumes(wide: str, narrow: str) -> bool:
    """Whether *wide* matches everything that *narrow* matches.

    Each `*` of *narrow* stands for texts of any length that nothing but wildcards match; beyond
    the count of `?` in *wide* a longer text makes no difference.
    """
    lengths = range(wide.count("?") + 2)
    return all(
        fnmatchcase(narrow.replace("?", _ANY).replace("*", _ANY * length), wide)
        for length in lengths
    )
