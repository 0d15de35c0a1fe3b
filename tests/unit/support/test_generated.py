"""The verdicts in plain Python against the truth of generated faults, at census."""

import math

import pytest
from fault_injection import counterparts, named, scores
from generated_units import POLL_MS, REQUEST_MS, Faults, Generated, generate
from reference_audit import judge

from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import (
    PERCENTILES,
    LatencyCells,
    UnitOutcome,
    Verdict,
    latency_bucket,
    latency_percentile,
    merge_latencies,
    upper_bound_ms,
)

WITHOUT_EVIDENCE = {Verdict.PENDING, Verdict.UNAUDITABLE}
PER_PARTITION = 20
ALL = Faults(late=PER_PARTITION, moved_again=4)


@pytest.fixture(scope="module", params=range(3))
def generated(request: pytest.FixtureRequest) -> Generated:
    return generate(request.param, faults=ALL)


@pytest.fixture(scope="module")
def outcome(generated: Generated) -> UnitOutcome:
    return judge(generated.records, generated.polls, generated.scope, Sample(1.0))


def test_the_truth_holds_every_kind_of_fault(generated: Generated) -> None:
    assert {verdict for verdict, count in generated.counts.items() if count} == {*Verdict} - {
        Verdict.UNMASKED
    }
    for verdict in (Verdict.LOST, Verdict.ALTERED, Verdict.MOVED, Verdict.EXTRA):
        assert generated.counts[verdict] == 3 * PER_PARTITION


def test_every_fault_is_named_and_nothing_else(generated: Generated, outcome: UnitOutcome) -> None:
    for verdict, score in scores(generated.truth.places, named(outcome.evidence)).items():
        if verdict not in WITHOUT_EVIDENCE:
            assert (score.recall, score.precision) == (1.0, 1.0), verdict
    assert {verdict: n for verdict, n in outcome.counts.items() if n} == generated.counts


def test_the_other_half_of_what_is_moved_or_altered_is_named(
    generated: Generated, outcome: UnitOutcome
) -> None:
    paired = {Verdict.MOVED, Verdict.ALTERED}
    found = counterparts(each for each in outcome.evidence if each.verdict in paired)
    assert found == generated.truth.counterparts


def test_replays_are_the_blocks_that_were_copied_again(outcome: UnitOutcome) -> None:
    assert sorted(each.size for each in outcome.replays) == sorted(Faults().replays * 3)


@pytest.mark.parametrize("which", ["end_to_end", "transfer"])
def test_latency_bounds_hold_the_truth_and_are_as_narrow_as_the_polls(
    generated: Generated, outcome: UnitOutcome, which: str
) -> None:
    cells: LatencyCells = merge_latencies(getattr(each, which) for each in outcome.partitions)
    truth = sorted(getattr(generated, which))
    assert sum(cells.cells.values()) == len(truth)
    polls = {"end_to_end": 1, "transfer": 2}[which]
    for q in PERCENTILES:
        found = latency_percentile(cells, q)
        true = truth[math.ceil(q * len(truth)) - 1]
        assert found is not None
        assert found.lower is not None
        assert found.lower <= true <= found.upper
        # A bracket reaches from the preceding request to the answer: the gap and one request.
        allowed = true + polls * (POLL_MS + REQUEST_MS)
        assert found.upper <= upper_bound_ms(latency_bucket(allowed))
