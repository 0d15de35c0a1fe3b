"""Latency from polls, compared with append times and an independent consumer's clock.

Both target topics have append times. The same records are judged again without them: the bounds
from polls must contain the true latency. A record arrives between its append time and the time at
which the consumer received it.
"""

import math

import pytest
from accuracy.lab_accuracy import true_bounds
from audit_scenario.scenario_run import AuditScenario
from audit_scenario.scenario_steps import BOTH_STAMPED, TARGET_STAMPED

from mm2slo_core.audit.unit_outcome import (
    PERCENTILES,
    LatencyCells,
    UnitOutcome,
    latency_bucket,
    latency_percentile,
    lower_bound_ms,
    merge_latencies,
    upper_bound_ms,
)

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("quiet-lab")]

POLL_MS = 500
"""Poll interval of the tests' exporter."""
BUSY_MS = 10_000
"""Delay and duration of a poll on a machine that stalls for seconds."""


def true_latencies(scenario: AuditScenario, name: str) -> list[int]:
    """From source to target timestamp; both are append times on BOTH_STAMPED."""
    pairs = scenario.reads[name].pairs
    return sorted(copy.content.timestamp - source.content.timestamp for source, copy in pairs)


def of_unit(outcome: UnitOutcome, which: str) -> LatencyCells:
    return merge_latencies(getattr(each, which) for each in outcome.partitions)


def rank(values: list[int], q: float) -> int:
    return values[math.ceil(q * len(values)) - 1]


def test_append_times_on_target_give_exact_latencies(scenario: AuditScenario) -> None:
    cells, truth = (
        of_unit(scenario.outcome(TARGET_STAMPED), "end_to_end"),
        true_latencies(scenario, TARGET_STAMPED),
    )
    assert cells.total_lower_ms == cells.total_upper_ms == sum(truth)
    for q in PERCENTILES:
        found = latency_percentile(cells, q)
        assert found is not None
        assert found.lower is not None
        assert found.lower <= rank(truth, q) <= found.upper
        assert latency_bucket(round(found.lower)) == latency_bucket(round(found.upper))


def test_append_times_on_both_sides_give_exact_transfer_latencies_only(
    scenario: AuditScenario,
) -> None:
    cells, truth = (
        of_unit(scenario.outcome(BOTH_STAMPED), "transfer"),
        true_latencies(scenario, BOTH_STAMPED),
    )
    assert cells.total_lower_ms == cells.total_upper_ms == sum(truth)
    assert of_unit(scenario.outcome(BOTH_STAMPED), "end_to_end").cells == {}


@pytest.mark.parametrize(
    ("name", "which", "brackets"),
    [
        (TARGET_STAMPED, "end_to_end", 1),
        (BOTH_STAMPED, "end_to_end", 1),
        (BOTH_STAMPED, "transfer", 2),
    ],
)
def test_bounds_from_polls_contain_truth_within_poll_interval(
    scenario: AuditScenario, name: str, which: str, brackets: int
) -> None:
    outcome = scenario.result.unstamped[scenario.topics.copy(name)]
    cells, truth = of_unit(outcome, which), true_bounds(scenario, name, which)
    assert sum(cells.cells.values()) == len(truth.least)
    for q in PERCENTILES:
        found = latency_percentile(cells, q)
        assert found is not None
        assert found.lower is not None
        assert found.lower <= rank(truth.greatest, q), q
        assert rank(truth.least, q) <= found.upper, q
    # Each bracket: from the preceding request to the response, rounded outward to buckets.
    allowed = brackets * (POLL_MS + BUSY_MS)
    for lower, upper in cells.cells:
        assert lower is not None
        assert upper_bound_ms(latency_bucket(lower_bound_ms(upper))) <= upper_bound_ms(
            latency_bucket(upper_bound_ms(lower) + allowed)
        )
