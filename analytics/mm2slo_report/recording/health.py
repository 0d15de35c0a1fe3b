"""How recording goes, for `/readyz` and `/metrics`. Times are epoch ms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_JITTER_MS: Final = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetHealth:
    """Scrapes of one exporter since this service started."""

    name: str
    scrapes: int = 0
    failures: int = 0
    last_success: int | None = None
    indicators: int = 0
    """In the last page that could be read."""
    left_out: int = 0
    """See `exposition.Page.left_out`."""
    problem: str = ""
    """Why the last scrape failed, if it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderHealth:
    """One moment of a recorder."""

    targets: tuple[TargetHealth, ...] = ()
    recorded_until: int | None = None
    """The end of the newest minute in the store."""
    waiting: int = 0
    """Minutes that the store would not take yet."""
    recorded_by: str = ""
    """Another service, which records in place of this one."""
    store_problem: str = ""
    ahead_ms: int = 0
    """By how much the newest minute lies after now: the clock went back."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong now, a sentence each; empty: nothing."""
        found = (
            [f"the history cannot be stored: {self.store_problem}"] if self.store_problem else []
        )
        if self.ahead_ms > _JITTER_MS:
            found.append(
                f"the history is {self.ahead_ms // 1000} s ahead of the clock: nothing is stored "
                "until the clock is there"
            )
        for each in self.targets:
            if each.problem:
                found.append(f"{each.name} cannot be scraped: {each.problem}")
            elif each.scrapes and not each.indicators:
                found.append(f"{each.name} publishes no service-level indicators")
        return tuple(found)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of a report has to know: `problems`, or that all has just started."""
        if self.problems or self.recorded_by or self.recorded_until is not None:
            return self.problems
        return ("nothing is recorded yet: the first figures come with the first whole minute",)
