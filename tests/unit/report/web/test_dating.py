"""How far a report looks for since when pairs burn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reported import Minutes, objective
from serving import AS_OF, MemorySource, Sums, served

from mm2slo_core.reporting.history import MINUTE_MS, Indicator
from mm2slo_core.sli import Sli, SliKey
from mm2slo_report.dating import MOST

if TYPE_CHECKING:
    from mm2slo_store import Store

HOUR = 60
"""Minutes."""


def source_of(keys: list[SliKey]) -> MemorySource:
    """Everything is bad for 10 hours."""
    minutes = Minutes()
    for number in range(24 * HOUR):
        at = AS_OF - (number + 1) * MINUTE_MS
        good = 0.0 if number < 10 * HOUR else 60.0
        minutes.put(at, good, 60.0 - good)
    counted = Sums(minutes)
    return MemorySource({Indicator(objective(key=key).flow, key): counted for key in keys})


def test_what_began_long_ago_is_found_and_of_many_the_worst_alone(store: Store) -> None:
    keys = [SliKey(Sli.LATENCY, f"{number}s") for number in range(1, MOST + 4)]
    promised = tuple(objective(0.99, key=key, window=3 * 86_400.0) for key in keys)
    service = served(store, source_of(keys), objectives=promised)
    entries = service.get("/slo")["entries"]
    since = [each["alerts"][0]["since"] for each in entries]
    # One bad minute of sixty is more than the factor, so it burns since the first one's end.
    assert since == ["2026-07-14T00:31:00Z"] * MOST + [None] * 3
    assert {each["alerts"][0]["state"] for each in entries} == {"burning"}
    for each in (entries[0], entries[-1]):
        pairs = service.get(f"/slo/{each['id']}/alerts")["pairs"]
        assert pairs[0]["since"] == "2026-07-14T00:31:00Z"
