"""Comparison of flow patterns."""

from __future__ import annotations

from fnmatch import fnmatchcase

# Not part of any alias, so that only wildcards match it.
_ANY = "\0"


def subsumes(wide: str, narrow: str) -> bool:
    """Whether *wide* matches everything that *narrow* matches.

    Each `*` of *narrow* is replaced with texts that only wildcards match; texts longer than the
    number of `?` in *wide* need not be tried.
    """
    lengths = range(wide.count("?") + 2)
    return all(
        fnmatchcase(narrow.replace("?", _ANY).replace("*", _ANY * length), wide)
        for length in lengths
    )
