"""Mutants that change nothing that can be seen, each with the reason.

The mutation run counts them as told. One that a test notices after all is an error, as is one
that no rule gives any more: this list must not grow a life of its own.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Equivalent(NamedTuple):
    """A mutant as `Mutant.change` shows it, and why it behaves like the rule."""

    rule: str
    change: str
    reason: str


EQUIVALENT: Final[tuple[Equivalent, ...]] = ()
