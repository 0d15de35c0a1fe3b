"""One line of `mm2slo check --connect`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "fix", "unknown"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What was checked and found on a cluster or flow (*where*), and what to do about it.

    *check* is a stable name, as in `permission`. No text contains a secret.
    """

    where: str
    check: str
    state: State
    finding: str
    remedy: str = ""


def listed(names: list[str], most: int = 3) -> str:
    """`a, b, c and 2 more`."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
