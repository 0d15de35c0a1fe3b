"""What a drill measured, its verdicts, and the report as evidence."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.cutover.drill_report import (
    DrillReport,
    DrillVerdict,
    GroupRecovery,
    Loss,
    PredictedLoss,
    drill_html,
    drill_json,
    drill_markdown,
    find_loss,
)

REPORT = DrillReport(
    flow="us->eu",
    performed_by="on-call <ops>",
    place="lab",
    fault="the source | was killed",
    config_sha256="ab" * 32,
    version="0.1.0",
    started_at=1_000.0,
    poll_seconds=2.0,
    decision_seconds=5.0,
    rpo_objective=10.0,
    rto_objective=60.0,
    state="finished",
    fault_at=1_100.0,
    detected_at=1_107.0,
    decided_at=1_112.0,
    predicted_loss=PredictedLoss(40, 1.5, 1_099.0),
    loss=Loss(50, 2.0, 5_000),
    groups=[
        GroupRecovery("shop", 10, 20, reread=12, assigned_at=1_114.0, normal_at=1_120.0),
        GroupRecovery("mail", assigned_at=1_114.0, normal_at=1_150.0),
    ],
)


@given(st.integers(0, 40), st.integers(0, 40), st.floats(0, 5))
def test_loss_is_what_was_acknowledged_and_is_not_there(
    copied: int, missing: int, later: float
) -> None:
    """One record per second; what is on the target and was not acknowledged does not count."""
    ledger = {b"%d" % number: float(number) for number in range(copied + missing)}
    present = [b"%d" % number for number in range(copied)] + [b"not acknowledged"]
    loss = find_loss(ledger, present, copied + missing + later)
    assert (loss.records, loss.acknowledged) == (missing, copied + missing)
    assert loss.seconds == pytest.approx(missing + later if missing else 0.0)


def test_source_that_went_on_after_the_fault_counts_to_its_last_record() -> None:
    assert find_loss({b"1": 10.0, b"2": 19.0}, [], fault_at=9.0).seconds == 9.0


def test_objectives_are_judged_by_the_slowest_group() -> None:
    assert REPORT.recovery_seconds == 50.0
    assert (REPORT.rpo_verdict, REPORT.rto_verdict) == (DrillVerdict.MET, DrillVerdict.MET)
    slow = replace(REPORT, rto_objective=49.0, rpo_objective=1.9)
    assert (slow.rpo_verdict, slow.rto_verdict) == (DrillVerdict.NOT_MET, DrillVerdict.NOT_MET)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"groups": [*REPORT.groups, GroupRecovery("stuck")]}, DrillVerdict.UNKNOWN),
        ({"groups": []}, DrillVerdict.UNKNOWN),
        ({"fault_at": None}, DrillVerdict.UNKNOWN),
        ({"rto_objective": None}, DrillVerdict.NOT_STATED),
    ],
)
def test_what_was_not_measured_does_not_meet_an_objective(
    changes: dict[str, object], expected: DrillVerdict
) -> None:
    assert replace(REPORT, **changes).rto_verdict is expected  # type: ignore[arg-type]
    assert replace(REPORT, loss=None).rpo_verdict is DrillVerdict.UNKNOWN


def test_without_a_fault_or_a_record_nothing_is_proved() -> None:
    tried = replace(REPORT, injected=False)
    assert {tried.rpo_verdict, tried.rto_verdict} == {DrillVerdict.UNKNOWN}
    assert replace(REPORT, loss=Loss(0, 0.0, 0)).rpo_verdict is DrillVerdict.UNKNOWN


def test_topics_that_are_further_behind_than_that_of_the_drill_count() -> None:
    behind = replace(REPORT, predicted_loss=PredictedLoss(10_000_000, 3_600.0, 1_099.0))
    assert (behind.recovery_point_seconds, behind.rpo_verdict) == (3_600.0, DrillVerdict.NOT_MET)


@pytest.mark.parametrize("predicted", [None, PredictedLoss(5_000, None, 1_099.0)])
def test_recovery_point_without_the_figure_of_mm2slo_is_unknown(
    predicted: PredictedLoss | None,
) -> None:
    found = replace(REPORT, predicted_loss=predicted)
    assert (found.recovery_point_seconds, found.rpo_verdict) == (None, DrillVerdict.UNKNOWN)


def test_group_that_would_not_resume_so_for_real_has_no_recovery_time() -> None:
    groups = [replace(REPORT.groups[0], problem="no commits on the target")]
    assert replace(REPORT, groups=groups).rto_verdict is DrillVerdict.UNKNOWN


def test_json_has_figures_and_verdicts() -> None:
    found = json.loads(drill_json(REPORT))
    assert (found["rpo_verdict"], found["recovery_seconds"]) == ("met", 50.0)
    assert found["loss"] == {"records": 50, "seconds": 2.0, "acknowledged": 5000}
    assert found["groups"][0]["predicted_most"] == 20


def test_report_for_people_has_stages_since_the_fault() -> None:
    text = drill_markdown(REPORT)
    assert "| shop | 7.0 s | 12.0 s | 14.0 s | unknown | 20.0 s |" in text
    assert "| recovery time (RTO) | 60.0 s | 50.0 s | met |" in text
    assert "| fault | the source \\| was killed |" in text


def test_names_are_escaped_in_html() -> None:
    page = drill_html(REPORT)
    assert "on-call &lt;ops&gt;" in page
    assert "<ops>" not in page


def test_report_of_a_new_drill_says_unknown() -> None:
    new = DrillReport("us->eu", "me", "lab", "kill", "00", "1", 0.0, 2.0, 0.0)
    for render in (drill_markdown, drill_html):
        assert "running" in render(new)
        assert "unknown" in render(new)
