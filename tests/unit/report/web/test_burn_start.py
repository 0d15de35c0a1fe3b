"""Search for the start of burns."""

from minute_history import Minutes, objective
from report_service_fixture import AS_OF, MemorySource, Sums, start_service

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.reporting.step_counts import MINUTE_MS, Indicator
from mm2slo_report.reporter import MAX_BURN_STARTS
from mm2slo_store.store import Store

HOUR = 60
"""Minutes."""


def source_of(keys: list[SliKey]) -> MemorySource:
    """A source where all events of the last 10 hours are bad."""
    minutes = Minutes()
    for number in range(24 * HOUR):
        at = AS_OF - (number + 1) * MINUTE_MS
        good = 0.0 if number < 10 * HOUR else 60.0
        minutes.put(at, good, 60.0 - good)
    counted = Sums(minutes)
    return MemorySource({Indicator(objective(key=key).flow, key): counted for key in keys})


def test_burn_start_hours_ago_is_found_for_worst_objectives_only(store: Store) -> None:
    keys = [SliKey(Sli.LATENCY, f"{number}s") for number in range(1, MAX_BURN_STARTS + 4)]
    objectives = tuple(objective(0.99, key=key, window=3 * 86_400.0) for key in keys)
    service = start_service(store, source_of(keys), objectives=objectives)
    entries = service.get("/slo")["entries"]
    since = [each["alerts"][0]["since"] for each in entries]
    # One bad minute of sixty exceeds the factor, so the burn starts at the end of the first one.
    assert since == ["2026-07-14T00:31:00Z"] * MAX_BURN_STARTS + [None] * 3
    assert {each["alerts"][0]["state"] for each in entries} == {"burning"}
    for each in (entries[0], entries[-1]):
        pairs = service.get(f"/slo/{each['id']}/alerts")["pairs"]
        assert pairs[0]["since"] == "2026-07-14T00:31:00Z"
