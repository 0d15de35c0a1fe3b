"""One line of `mm2slo check --connect`."""

from __future__ import annotations

from typing import Literal, NamedTuple

State = Literal["ok", "fix", "unknown"]


class CheckResult(NamedTuple):
    """What was found on a cluster or flow (*where*), and what to do. *check* is a stable name."""

    where: str
    check: str
    state: State
    finding: str
    remedy: str = ""


def listed(names: list[str], most: int = 3) -> str:
    """`a, b, c and 2 more`."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
