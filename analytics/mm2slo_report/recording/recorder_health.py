"""The state of the recorder, for `/readyz` and `/metrics`. Times are epoch ms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_JITTER_MS: Final = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetHealth:
    """Scrapes of an exporter since this service started."""

    name: str
    scrapes: int = 0
    failures: int = 0
    last_success: int | None = None
    indicators: int = 0
    """In the last valid page."""
    left_out: int = 0
    """See `exposition.Page.left_out`."""
    problem: str = ""
    """Why the last scrape failed; empty: it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderHealth:
    """A snapshot of the recorder's state."""

    targets: tuple[TargetHealth, ...] = ()
    recorded_until: int | None = None
    """The end of the newest whole step in the store."""
    recorded_by: str = ""
    """Another service that records in place of this one; empty: none."""
    store_problem: str = ""
    ahead_ms: int = 0
    """How far the newest step is in the future, because the clock was set back."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Current problems, a sentence each."""
        found = (
            [f"the history cannot be stored: {self.store_problem}"] if self.store_problem else []
        )
        if self.ahead_ms > _JITTER_MS:
            found.append(
                f"the history is {self.ahead_ms // 1000} s ahead of the clock: nothing is stored "
                "until the clock catches up"
            )
        for each in self.targets:
            if each.problem:
                found.append(f"{each.name} cannot be scraped: {each.problem}")
            elif each.scrapes and not each.indicators:
                found.append(f"{each.name} exposes no service-level indicators")
        return tuple(found)

    @property
    def remarks(self) -> tuple[str, ...]:
        """`problems`, or a note that recording has just started; for readers of a report."""
        if self.problems or self.recorded_by or self.recorded_until is not None:
            return self.problems
        return ("no data recorded yet: the first figures follow within five minutes",)
