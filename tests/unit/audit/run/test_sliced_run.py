"""A run with a sample by slices: what it announces, stores and reports."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from audit_runs import CONFIG, fakes_of, ports_for
from generated_units import Faults, Generated, generate
from sliced_units import sliced

from mm2slo_audit.report.audit_figures import compute_flow_figures, compute_topic_figures
from mm2slo_audit.report.figure_format import format_coverage
from mm2slo_audit.report.html_report import render_html
from mm2slo_audit.report.json_report import render_json
from mm2slo_audit.report.markdown_report import render_markdown
from mm2slo_audit.run import AuditOptions, RunReport, Span, audit
from mm2slo_core.audit.audit_scope import SlicePlan
from mm2slo_core.audit.confidence_bounds import clopper_pearson
from mm2slo_core.audit.record_sample import Sample, SampleBy
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_report.audit_figures import audit_figures
from mm2slo_report.web.audit_models import AuditRun
from mm2slo_store import Store

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = Sample(0.2, 5, SampleBy.SLICES, 50)
FAULTS = Faults(
    lost=20, altered=0, moved=0, duplicate=30, out_of_order=0, identical=0, replays=(),
    unauditable=0, expired=0, tail=0,
)  # fmt: skip


def run(folder: Path, *units: Generated) -> tuple[RunReport, list[str], AuditRun, float | None]:
    """The report, the messages, and the run in the store's service with its bound of loss."""
    window = units[0].scope.window
    options = AuditOptions(span=Span(start=window.start, end=window.end), sample=SAMPLE)
    with Store.open(folder / "audit.db") as store:
        ports = ports_for(store, folder / "runs", *units)
        report = audit(CONFIG, options, ports)
        (stored,) = store.runs()
        kept = store.units(run_id=report.run_id)
        compared = {each.outcome.scope.target_topic: each.outcome.slices for each in report.units}
        assert {each.key.target_topic: each.slices for each in kept} == compared
        found = audit_figures(stored, report.flows[0], kept, {})
        bound = found.records[Verdict.LOST].interval
    _scopes, _engine, progress = fakes_of(ports)
    return report, progress.messages, AuditRun.of(stored), None if bound is None else bound.upper


@pytest.fixture(scope="module")
def unit() -> Generated:
    generated = generate(3, partitions=4, size=6_000, faults=FAULTS)
    scope = sliced(generated, SAMPLE, margin=20)
    assert scope.sampled is not None
    first, *others = scope.slices
    plan = replace(scope.sampled, slices=(first._replace(target=None), *others))
    return replace(generated, scope=replace(scope, sampled=plan))


@pytest.fixture(scope="module")
def whole() -> Generated:
    generated = generate(4, partitions=2, size=600, faults=FAULTS)
    plan = SlicePlan((), 300.0, "compacted")
    scope = replace(generated.scope, target_topic="us.small", sampled=plan)
    return replace(generated, scope=scope)


def test_sliced_run_announces_slices_bytes_and_bound(
    tmp_path: Path, unit: Generated, whole: Generated
) -> None:
    _report, messages, _stored, _bound = run(tmp_path, unit, whole)
    (text, small) = (each for each in messages if each.startswith("us."))
    drawn = len({each.number for each in unit.scope.slices})
    bound = clopper_pearson(0, drawn - 1).upper * 100
    assert text.startswith(f"{unit.scope.target_topic}: {drawn} slices, about 0 MB of the source")
    assert "; 1 are unauditable, since neither offset syncs nor the timeline" in text
    stated = float(text.rpartition(" ")[2].removesuffix("%"))
    assert bound <= stated < bound + 0.1
    assert small == "us.small: census, compacted"


def test_sliced_run_reports_bounds_by_slices(tmp_path: Path, unit: Generated) -> None:
    report, _messages, stored, bound = run(tmp_path, unit)
    (topic,) = report.units
    outcome = topic.outcome
    assert outcome.slices == len({each.number for each in unit.scope.slices}) - 1
    loss = next(each for each in topic.bounds if each.name == "loss")
    assert (
        f"records in {outcome.slices} slices, {outcome.counts[Verdict.LOST]} lost" in loss.sentence
    )
    assert loss.upper == clopper_pearson(1, outcome.slices).upper
    assert [each.name for each in topic.bounds] == ["loss", "duplication"]
    assert bound == loss.upper
    assert (stored.sampled_by, stored.sampled_ratio) == (SampleBy.SLICES, 0.2)
    assert stored.bytes_read == report.bytes_read == 12_345_678
    assert report.exit_code == 1
    assert "matched in a sample of 20% by slices" in report.conclusion.line


def test_sliced_run_of_several_topics_has_no_common_bound(
    tmp_path: Path, unit: Generated, whole: Generated
) -> None:
    report, _messages, _stored, bound = run(tmp_path, unit, whole)
    assert bound is None
    small = next(each for each in report.units if not each.outcome.slices)
    assert "(census of" in next(each.sentence for each in small.bounds)
    quality = compute_topic_figures(small, SAMPLE).quality
    assert "read completely, not in slices: compacted" in quality


def test_every_format_has_sample_and_bytes_read(tmp_path: Path, unit: Generated) -> None:
    report, *_others = run(tmp_path, unit)
    assert format_coverage(report) == (
        "sample: 1 in 5 slices of source offsets, with their copies; 12.3 MB read"
    )
    for text in (render_html(report), render_markdown(report)):
        assert "1 in 5 slices of source offsets, with their copies; 12.3 MB read" in text
        assert "key affinity and extra records are not judged" in text
        assert "1 slices are unauditable" in text
    found = json.loads(render_json(report))
    assert found["run"]["sample"] == {"rate": 0.2, "salt": 5, "census": False, "by": "slices"}
    assert found["run"]["bytes_read"] == 12_345_678
    assert found["topics"][0]["slices"] == report.units[0].outcome.slices
    (flow,) = compute_flow_figures(report)
    seconds = (report.window.end - report.window.start) / 1000
    assert flow.throughput.records * seconds == pytest.approx(24_000, rel=0.05)
