"""Latency from the timeline of polls, against the broker's own stamps and a reader's clock.

Both targets stamp what they append. The same records are judged again as if the stamps said
nothing: what the polls then tell must hold the truth. A record can be read a little after its
stamp, so its arrival lies between the stamp and the time at which a witness had it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from accuracy.lab_accuracy import true_bounds
from audited import APPENDED, STAMPED

from mm2slo_core.audit.latency_histogram import (
    PERCENTILES,
    bucket,
    lower_bound_ms,
    merge,
    percentile,
    upper_bound_ms,
)

if TYPE_CHECKING:
    from audited import Told

    from mm2slo_core.audit.unit_outcome import LatencyCells, UnitOutcome

pytestmark = pytest.mark.lab

POLL_MS = 500
"""What the tests' exporter polls at."""
BUSY_MS = 1_500
"""A poll may come late and take long on a machine that runs all of this."""


def true_latencies(told: Told, name: str) -> list[int]:
    """From source timestamp to target timestamp; on the stamped topic both are append times."""
    pairs = told.reads[name].pairs
    return sorted(copy.content.timestamp - source.content.timestamp for source, copy in pairs)


def of_unit(outcome: UnitOutcome, which: str) -> LatencyCells:
    return merge(getattr(each, which) for each in outcome.partitions)


def rank(values: list[int], q: float) -> int:
    return values[math.ceil(q * len(values)) - 1]


def test_a_stamping_target_gives_exact_latencies(told: Told) -> None:
    cells, truth = of_unit(told.outcome(APPENDED), "end_to_end"), true_latencies(told, APPENDED)
    assert cells.total_lower_ms == cells.total_upper_ms == sum(truth)
    for q in PERCENTILES:
        found = percentile(cells, q)
        assert found is not None
        assert found.lower is not None
        assert found.lower <= rank(truth, q) <= found.upper
        assert bucket(round(found.lower)) == bucket(round(found.upper))


def test_two_stamping_sides_give_exact_transfers_and_nothing_else(told: Told) -> None:
    cells, truth = of_unit(told.outcome(STAMPED), "transfer"), true_latencies(told, STAMPED)
    assert cells.total_lower_ms == cells.total_upper_ms == sum(truth)
    assert of_unit(told.outcome(STAMPED), "end_to_end").cells == {}


@pytest.mark.parametrize(
    ("name", "which", "brackets"),
    [(APPENDED, "end_to_end", 1), (STAMPED, "end_to_end", 1), (STAMPED, "transfer", 2)],
)
def test_bounds_from_polls_hold_the_truth_and_are_as_narrow_as_the_polls(
    told: Told, name: str, which: str, brackets: int
) -> None:
    outcome = told.audited.unstamped[told.story.copy(name)]
    cells, truth = of_unit(outcome, which), true_bounds(told, name, which)
    assert sum(cells.cells.values()) == len(truth.least)
    for q in PERCENTILES:
        found = percentile(cells, q)
        assert found is not None
        assert found.lower is not None
        assert found.lower <= rank(truth.greatest, q), q
        assert rank(truth.least, q) <= found.upper, q
    # Each bracket: from the preceding request to the answer, rounded outward to buckets.
    allowed = brackets * (POLL_MS + BUSY_MS)
    for lower, upper in cells.cells:
        assert lower is not None
        assert upper_bound_ms(bucket(lower_bound_ms(upper))) <= upper_bound_ms(
            bucket(upper_bound_ms(lower) + allowed)
        )
    mean_width = (cells.total_upper_ms - cells.total_lower_ms) / len(truth.least)
    assert mean_width <= brackets * (2 * POLL_MS)
