"""Reports: the same figures in every form, each fit for its reader."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from audit_runs import CONFIG, ports_for
from generated_units import Faults, generate
from rich.cells import cell_len
from rich.console import Console

from mm2slo_audit.report import terminal_report
from mm2slo_audit.report.html_report import html
from mm2slo_audit.report.json_report import document, render_json
from mm2slo_audit.report.markdown_report import markdown
from mm2slo_audit.report.report_file import check_report_path, write_report
from mm2slo_audit.run import AuditOptions, RunReport, Span, audit
from mm2slo_audit.run.stated_bounds import compute_stated_bounds
from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason
from mm2slo_core.audit.conclusion import conclude
from mm2slo_core.audit.key_cells import pool_key_cells
from mm2slo_core.audit.record_sample import Sample
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.unit_outcome import AffinityOutcome, KeyCell
from mm2slo_core.timeline_record import Side
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_store import Store

if TYPE_CHECKING:
    from pathlib import Path

EVIL = "us.<script>alert('x')</script>&[red]|"
FAULTS = Faults(
    lost=5, altered=5, moved=5, duplicate=5, extra=5, out_of_order=5, identical=5, replays=(4,),
    expired=3, unauditable=2, tail=40,
)  # fmt: skip


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    folder = tmp_path_factory.mktemp("report")
    unit = generate(3, partitions=2, size=600, faults=FAULTS)
    unit = replace(unit, scope=replace(unit.scope, target_topic=EVIL))
    window = unit.scope.window
    with Store.open(folder / "audit.db") as store:
        found = audit(
            CONFIG,
            AuditOptions(span=Span(start=window.start, end=window.end)),
            ports_for(store, folder / "runs", unit),
        )
    reason, flows = NotAuditedReason.TARGET_MISSING, (Flow("us", "eu"),)
    missing = NotAudited("us.gone", reason, "there is no us.gone on eu", flows)
    return replace(found, not_audited=(missing,))


def printed(report: RunReport, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    terminal_report.write(console, report)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_the_terminal_report_fits_80_columns_and_ends_with_the_verdict(report: RunReport) -> None:
    *table, verdict = printed(report)
    assert max(map(cell_len, table)) <= 80
    assert verdict == f"verdict: {report.conclusion.line}"
    assert "complete up to 20" in verdict


def test_large_figures_fit_80_columns_too(report: RunReport) -> None:
    (unit,) = report.units
    parts = tuple(
        replace(part, counts={verdict: n * 10_000 for verdict, n in part.counts.items()})
        for part in unit.outcome.partitions
    )
    name = "us.a-topic-with-quite-a-long-name.of-several-parts.and-a-version-v1"
    scope = replace(unit.outcome.scope, target_topic=name)
    large = replace(unit, outcome=replace(unit.outcome, scope=scope, partitions=parts))
    *table, _ = printed(replace(report, units=(large,)))
    assert max(map(cell_len, table)) <= 80
    assert any(re.search(r"\d,\d{3},\d{3}", line) for line in table)


def test_the_terminal_names_every_class_and_every_topic_left_out(report: RunReport) -> None:
    text = "\n".join(printed(report, 200))
    for words in (
        "us->eu",
        "census: every record of the window was compared",
        "10 altered",
        "10 moved",
        "expired-unreplicated",
        "us.gone: target_missing: there is no us.gone on eu",
        "lost: us generated-0 offset ",
        "loss is ",
    ):
        assert words in text
    assert EVIL in text  # [red] is no style here


class _Reader(HTMLParser):
    """What a browser would make of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attrs if name in {"src", "href"}]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_one_document_that_loads_and_runs_nothing(report: RunReport) -> None:
    page = _Reader()
    page.feed(html(report))
    assert page.loads == []
    assert "script" not in page.tags
    assert page.tags.count("html") == 1
    assert EVIL in page.text
    assert report.conclusion.line in page.text
    assert "prefers-color-scheme: dark" in page.text


def test_markdown_tables_stay_whole_whatever_a_topic_is_called(report: RunReport) -> None:
    text = markdown(report)
    assert "<script" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    tables = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
    assert tables == [8] * 3 + [9] * 3 + [4] * 3
    assert text.startswith("# Replication audit: FAULTS\n")


def test_json_is_the_documented_form(report: RunReport) -> None:
    found = json.loads(render_json(report))
    assert found == document(report)
    assert list(found) == ["version", "run", "verdict", "flows", "topics", "not_audited"]
    assert found["version"] == 1
    assert found["run"]["sample"] == {"rate": 1.0, "salt": 0, "census": True}
    assert found["verdict"]["exit_code"] == 1
    (topic,) = found["topics"]
    assert topic["counts"]["lost"] == 10
    assert topic["counts"]["matched"] == report.units[0].outcome.counts[Verdict.MATCHED]
    assert topic["faults"] == sum(
        topic["counts"][name]
        for name in ("overdue", "lost", "expired-unreplicated", "moved", "altered")
    )
    p99 = topic["end_to_end_latency"]["p99_ms"]
    assert p99["lower"] <= p99["upper"]
    lost = [each for each in topic["evidence"] if each["verdict"] == "lost"]
    assert len(lost) == 10
    assert all(re.fullmatch("[0-9a-f]{16}", each["fingerprint"]) for each in lost)
    (flow,) = found["flows"]
    assert flow["flow"] == "us->eu"
    assert flow["counts"]["lost"] == 10
    assert found["not_audited"][0]["reason"] == "target_missing"


def test_throughput_is_of_all_that_the_source_sent(report: RunReport) -> None:
    """Whatever became of it: what has left the target since was sent as well."""
    unit = generate(3, partitions=2, size=600, faults=FAULTS)
    window = unit.scope.window
    sent = [
        each
        for each in unit.records
        if each.side is Side.SOURCE and window.contains(each.timestamp)
    ]
    seconds = (window.end - window.start) / 1000
    (topic,) = document(report)["topics"]
    assert topic["counts"]["unauditable"] > 0
    assert topic["records_per_second"] * seconds == pytest.approx(len(sent))
    assert topic["bytes_per_second"] * seconds == pytest.approx(sum(each.size for each in sent))


def test_a_sample_says_so_in_every_form(report: RunReport) -> None:
    sampled = replace(report, sample=Sample(0.01))
    words = "sample: 1% of the records, chosen by hash, the same on both sides"
    assert words in "\n".join(printed(sampled, 200))
    assert words in html(sampled)
    assert words in markdown(sampled)
    rate = document(sampled)["flows"][0]["records_per_second"]
    assert rate == pytest.approx(100 * document(report)["flows"][0]["records_per_second"], rel=1e-3)


def test_rates_of_keys_are_in_every_form(report: RunReport) -> None:
    (unit,) = report.units
    keys = [KeyCell(1, 9, 8, 4 * (n % 10 == 0), 0) for n in range(200)]
    affinity = AffinityOutcome(
        keys=200, keys_split=20, records_moved=80, cells=pool_key_cells(keys)
    )
    sample = Sample(0.01)
    outcome = replace(unit.outcome, affinity=affinity)
    sampled = replace(unit, outcome=outcome, bounds=compute_stated_bounds(outcome, sample))
    shown = replace(report, sample=sample, units=(sampled,))
    moved = "records that moved partition: 5% (95 %: "
    quiet = "200 keys sampled, 0 out of order); of their 1,800 records none is out of order"
    detected = "sampled records are out of order in their partition: that is detected"
    for text in ("\n".join(printed(shown, 200)), html(shown), markdown(shown)):
        assert moved in text
        assert "bootstrap over 200 keys)" in text
        assert quiet in text
        assert detected in text
    *table, _ = printed(shown)
    assert max(map(cell_len, table)) <= 80
    (topic,) = document(shown)["topics"]
    assert topic["affinity"] | {"broken_key_hashes": []} == {
        "keys": 200,
        "keys_split": 20,
        "keys_disordered": 0,
        "records_moved": 80,
        "source_records": 1_800,
        "target_records": 1_600,
        "records_out_of_order": 0,
        "broken_key_hashes": [],
    }
    (bound,) = [each for each in topic["bounds"] if each["words"].startswith(moved)]
    assert bound["name"] == "records that moved partition"
    assert 0.02 < bound["lower"] < 0.05 < bound["upper"] < 0.08
    unordered = replace(sampled, outcome=replace(outcome, order_judged=False))
    (topic,) = document(replace(shown, units=(unordered,)))["topics"]
    assert topic["affinity"]["records_out_of_order"] is None


def test_nothing_judged_is_a_report_as_well(report: RunReport) -> None:
    conclusion = conclude([], report.not_audited)
    empty = replace(report, units=(), conclusion=conclusion)
    *_, verdict = printed(empty)
    assert verdict.startswith("verdict: nothing could be judged: 1 topic target_missing")
    assert "NOTHING JUDGED" in html(empty)
    assert markdown(empty).startswith("# Replication audit: NOTHING JUDGED")
    assert document(empty)["verdict"]["complete_up_to"] is None


@pytest.mark.parametrize("suffix", [".html", ".md", ".json", ".HTML"])
def test_the_suffix_says_the_form(report: RunReport, tmp_path: Path, suffix: str) -> None:
    target = check_report_path(tmp_path / f"report{suffix}")
    write_report(target, report)
    start = {".html": "<!doctype html>", ".md": "# Replication", ".json": "{\n"}[suffix.lower()]
    assert target.read_text(encoding="utf-8").startswith(start)
    assert [each.name for each in tmp_path.iterdir()] == [target.name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("report.pdf", "has no known form: end it in .html, .md or .json"),
        ("report", "has no known form"),
        ("missing/report.md", "there is no folder"),
        ("folder.md", "is a folder"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_beforehand(
    tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "folder.md").mkdir()
    with pytest.raises(UserError, match=message):
        check_report_path(tmp_path / name)
