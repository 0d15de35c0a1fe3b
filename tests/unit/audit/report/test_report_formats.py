"""Reports: the same figures in every format."""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from audit_runs.fake_ports import CONFIG, ports_for
from generated_units import Faults, generate
from rich.cells import cell_len
from rich.console import Console

from mm2slo_audit.audit_options import AuditOptions, TimeSpan
from mm2slo_audit.audit_ports import RunReport, UnitReport
from mm2slo_audit.audit_run import audit, compute_stated_bounds
from mm2slo_audit.report import terminal_report
from mm2slo_audit.report.audit_html import render_html
from mm2slo_audit.report.report_file import (
    AuditReport,
    build_json_document,
    check_report_path,
    render_json,
    render_markdown,
    write_report,
)
from mm2slo_audit.report.run_figures import compute_topic_figures
from mm2slo_core.audit.audit_conclusion import conclude
from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import (
    AffinityOutcome,
    KeyCell,
    LatencyCells,
    PartitionOutcome,
    Verdict,
    latency_bucket,
    pool_key_cells,
)
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_store.audit_document import AuditDetail, AuditedTopic
from mm2slo_store.store import Store

EVIL = "us.<script>alert('x')</script>&[red]|"
FAULTS = Faults(
    lost=5, altered=5, moved=5, duplicate=5, extra=5, out_of_order=5, identical=5, replays=(4,),
    expired=3, unauditable=2, tail=40,
)  # fmt: skip


@pytest.fixture(scope="module")
def judged_run(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Store, RunReport]]:
    """The store with one run, and its report."""
    folder = tmp_path_factory.mktemp("report")
    unit = generate(3, partitions=2, size=600, faults=FAULTS)
    unit = replace(unit, scope=replace(unit.scope, target_topic=EVIL))
    window = unit.scope.window
    with Store.open(folder / "audit.db") as store:
        found = audit(
            CONFIG,
            AuditOptions(span=TimeSpan(start=window.start, end=window.end)),
            ports_for(store, folder / "runs", unit),
        )
        yield store, found


@pytest.fixture(scope="module")
def report(judged_run: tuple[Store, RunReport]) -> RunReport:
    reason, flows = NotAuditedReason.TARGET_MISSING, (Flow("us", "eu"),)
    missing = NotAudited("us.gone", reason, "us.gone does not exist on eu", flows)
    return replace(judged_run[1], not_audited=(missing,))


def printed(report: RunReport, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    terminal_report.print_report(console, report)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_terminal_report_names_the_command_with_the_details_of_one_more_topic(
    report: RunReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal_report, "_TOPICS_IN_DETAIL", len(report.units) - 1)
    assert "details of 1 more topic: mm2slo audit --report FILE.html" in printed(report)


def test_terminal_report_fits_80_columns_and_ends_with_verdict(report: RunReport) -> None:
    *table, verdict = printed(report)
    assert max(map(cell_len, table)) <= 80
    assert verdict == f"verdict: {report.conclusion.line}"
    assert "complete up to 20" in verdict


def test_terminal_report_large_figures_fit_80_columns(report: RunReport) -> None:
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
    assert any(name in line for line in table)
    assert any(re.search(r"\d,\d{3},\d{3}", line) for line in table)


@pytest.mark.parametrize("length", [5, 20, 33, 44, 60, 76])
def test_terminal_report_does_not_split_names(report: RunReport, length: int) -> None:
    (unit,) = report.units
    name = "a" * length
    long = replace(
        unit, outcome=replace(unit.outcome, scope=replace(unit.outcome.scope, target_topic=name))
    )
    short = replace(
        unit, outcome=replace(unit.outcome, scope=replace(unit.outcome.scope, target_topic="b"))
    )
    lines = printed(replace(report, units=(short, long)))[:-1]
    assert max(map(cell_len, lines)) <= 80
    matched = f"{unit.outcome.counts[Verdict.MATCHED]:,}"
    assert re.search(rf"\b{name}:?\s+{matched}\b", "\n".join(lines))


def test_terminal_report_shows_all_verdicts_and_topics_not_audited(report: RunReport) -> None:
    text = "\n".join(printed(report, 200))
    for expected in (
        "us->eu",
        "census: every record of the window was compared",
        "expired-unreplicated",
        "us.gone: target_missing: us.gone does not exist on eu",
        "lost: us generated-0 offset ",
        "loss is ",
    ):
        assert expected in text
    for heading in ("Expired", "Moved", "Altered", "Out of order", "Unauditable", "Extra"):
        assert heading in text
    assert "Overdue" not in text
    assert EVIL in text  # [red] is not interpreted as a style


def with_arrivals(report: RunReport, *arrivals: tuple[int | None, int, int]) -> UnitReport:
    """The first unit with records of these latencies: at least, at most (ms), number."""
    (unit, *_others) = report.units
    cells = {
        (None if lower is None else latency_bucket(lower), latency_bucket(upper)): count
        for lower, upper, count in arrivals
    }
    count = sum(cells.values())
    part = PartitionOutcome(0, 0, {Verdict.MATCHED: count}, end_to_end=LatencyCells(cells))
    return replace(unit, outcome=replace(unit.outcome, partitions=(part,)))


def width_notes(unit: UnitReport, sample: Sample) -> list[str]:
    found = compute_topic_figures(unit, sample).quality
    return [line.partition(" are wide: ")[2] for line in found if "are wide" in line]


@pytest.mark.parametrize(
    ("arrivals", "rate", "expected"),
    [
        ([(100, 350, 9_999)], 1.0, []),
        ([(8_000, 8_300, 9_999)], 1.0, []),  # both bounds are rounded to buckets
        (
            [(100, 350, 9_900), (59, 2_600, 99)],
            1.0,
            ["99 of 9,999 records arrived between readings of the target that are up to 2.5 s"],
        ),
        (
            [(100, 350, 4_000), (None, 350, 5_999)],
            1.0,
            ["5,999 of 9,999 records arrived before the exporter's first reading of their"],
        ),
        (
            [(10, 50, 5_000), (500, 700, 5)],
            0.01,
            ["those of a sample hold for all records"],
        ),
    ],
)
def test_report_states_why_bounds_of_latency_are_wide(
    report: RunReport,
    arrivals: list[tuple[int | None, int, int]],
    rate: float,
    expected: list[str],
) -> None:
    notes = width_notes(with_arrivals(report, *arrivals), Sample(rate))
    assert [note[: len(text)] for note, text in zip(notes, expected, strict=True)] == expected


class _Reader(HTMLParser):
    """Collects tags, loaded resources and text of the page."""

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


def test_html_report_has_no_scripts_or_external_resources(report: RunReport) -> None:
    page = _Reader()
    page.feed(render_html(report))
    assert page.loads == []
    assert "script" not in page.tags
    assert page.tags.count("html") == 1
    assert EVIL in page.text
    assert report.conclusion.line in page.text
    assert "prefers-color-scheme: dark" in page.text


def test_markdown_report_escapes_topic_names(report: RunReport) -> None:
    text = render_markdown(report)
    assert "<script" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    tables = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
    assert tables == [13] * 3 + [14] * 3 + [4] * 3
    assert text.startswith("# Replication audit: FAULTS\n")


def test_json_report_has_documented_fields(report: RunReport) -> None:
    found = json.loads(render_json(report))
    assert found == build_json_document(report)
    assert AuditReport.model_validate_json(render_json(report)).model_dump(mode="json") == found
    assert found["version"] == 1
    assert (found["sampled_ratio"], found["salt"]) == (1.0, 0)
    assert found["bytes_read"] == 12_345_678
    assert (found["state"], found["exit_code"], found["result"]) == ("finished", 1, "faults")
    assert found["verdict"] == report.conclusion.line
    topic, missing = found["topics"]
    assert topic["counts"]["lost"] == 10
    assert topic["counts"]["matched"] == report.units[0].outcome.counts[Verdict.MATCHED]
    assert topic["faults"] == sum(
        topic["counts"][name]
        for name in ("overdue", "lost", "expired-unreplicated", "moved", "altered")
    )
    p99 = topic["end_to_end_latency_seconds"]["p99"]
    assert p99["lower"] <= p99["upper"]
    lost = [each for each in found["evidence"] if each["verdict"] == "lost"]
    assert len(lost) == 10
    assert all(re.fullmatch("[0-9a-f]{16}", each["fingerprint"]) for each in lost)
    assert {each["topic"] for each in lost} == {EVIL}
    (flow,) = found["flow_figures"]
    assert found["flows"] == [flow["flow"]] == ["us->eu"]
    assert flow["counts"]["lost"] == 10
    assert (missing["topic"], missing["cluster"]) == ("us.gone", "eu")
    assert missing["not_audited"] == {
        "reason": "target_missing",
        "detail": "us.gone does not exist on eu",
    }


def test_json_report_has_fields_of_the_report_service(
    judged_run: tuple[Store, RunReport],
) -> None:
    """With the same values: of a census only percentiles differ, which the service widens."""
    store, report = judged_run
    (run,) = store.runs()
    topics = [AuditedTopic.of(each, lambda _flow: True) for each in store.units()]
    served = AuditDetail.of(run, topics=topics).model_dump(mode="json")
    written = build_json_document(report)
    percentiles = "end_to_end_latency_seconds"
    for theirs, ours in zip(served.pop("topics"), written["topics"], strict=True):
        assert theirs.pop(percentiles).keys() == ours[percentiles].keys()
        assert theirs.items() <= ours.items()
    assert served.items() <= written.items()


def test_json_report_throughput_counts_all_source_records(report: RunReport) -> None:
    """Whatever their verdicts are: unauditable records were sent as well."""
    unit = generate(3, partitions=2, size=600, faults=FAULTS)
    window = unit.scope.window
    sent = [
        each
        for each in unit.records
        if each.side is Side.SOURCE and window.contains(each.timestamp)
    ]
    seconds = (window.end - window.start) / 1000
    topic, _missing = build_json_document(report)["topics"]
    assert topic["counts"]["unauditable"] > 0
    assert topic["records_per_second"] * seconds == pytest.approx(len(sent))
    assert topic["bytes_per_second"] * seconds == pytest.approx(sum(each.size for each in sent))


def test_reports_show_timestamp_beyond_dates_as_number(report: RunReport) -> None:
    (unit,) = report.units
    far = replace(unit.outcome.evidence[0], timestamp=(1 << 63) - 1)
    unit = replace(unit, outcome=replace(unit.outcome, evidence=(far,)))
    changed = replace(report, units=(unit,))
    assert "timestamp 9223372036854775807" in render_markdown(changed)
    (written,) = build_json_document(changed)["evidence"]
    assert written["timestamp"] is None


def only_on_target(report: RunReport, **changes: Any) -> RunReport:
    """*report* with 17 extra and 1,500 unauditable records more, in no flow."""
    (unit,) = report.units
    part = PartitionOutcome(None, 9, {Verdict.EXTRA: 17, Verdict.UNAUDITABLE: 1_500})
    outcome = replace(unit.outcome, partitions=(*unit.outcome.partitions, part), **changes)
    return replace(report, units=(replace(unit, outcome=outcome),))


def test_flow_rows_include_records_only_on_target(report: RunReport) -> None:
    found = build_json_document(only_on_target(report))
    assert [each["counts"] for each in found["flow_figures"]] == [found["topics"][0]["counts"]]
    assert found["flow_figures"][0]["counts"]["unauditable"] >= 1_500


def test_records_only_on_target_of_shared_topic_have_own_row(report: RunReport) -> None:
    (unit,) = report.units
    flows = unit.outcome.scope.flows
    second = replace(flows[0], flow=Flow("ap", "eu"))
    scope = replace(unit.outcome.scope, flows=(*flows, second))
    found = build_json_document(only_on_target(report, scope=scope))
    assert [each["flow"] for each in found["flow_figures"]] == ["us->eu", "us->eu+ap->eu"]
    for name, total in found["topics"][0]["counts"].items():
        assert sum(each["counts"][name] for each in found["flow_figures"]) == total


def test_formats_show_same_counts_and_dash_where_order_is_not_judged(report: RunReport) -> None:
    (unit,) = report.units
    (first, *rest) = unit.outcome.partitions
    late = replace(first, counts={**first.counts, Verdict.LATE: 100})
    outcome = replace(unit.outcome, partitions=(late, *rest))
    ordered = replace(unit, outcome=outcome)
    unordered = replace(unit, outcome=replace(outcome, order_judged=False))
    shown = replace(report, units=(ordered, unordered))
    markdown = [line.strip("| ").split(" | ") for line in render_markdown(shown).splitlines()]
    heads, _, *topics = markdown[[line[0] for line in markdown].index("Topic") :][:4]
    rows = [dict(zip(heads, cells, strict=True)) for cells in topics]
    assert rows[1]["Out of order"] == "-"
    page = _Reader()
    page.feed(render_html(shown))
    terminal = "\n".join(printed(shown, 250))
    documents = build_json_document(replace(shown, not_audited=()))["topics"]
    assert [each["order_judged"] for each in documents] == [True, False]
    for row, document in zip(rows, documents, strict=True):
        assert row["Matched"] == f"{document['counts']['matched']:,}"
        assert row["Late"] == "100"
        numbers = [row[name] for name in heads[1:] if name != "p99 latency"]
        assert " ".join(numbers[:4]) in " ".join(terminal.split())
        assert all(f">{number}<" in render_html(shown) for number in numbers)


def test_terminal_report_lists_figures_without_room_for_a_column(report: RunReport) -> None:
    text = " ".join(" ".join(printed(report)).split())
    assert "us->eu Matched Lost Duplicates p99 latency" in text
    assert "6 expired, 10 moved, 10 altered, 40 pending, 8 extra, 20 out of order, 8 un" in text
    assert "unauditable, 7 of 80 keys broken" in text


def test_reports_show_duplicated(report: RunReport) -> None:
    (unit,) = report.units
    part = PartitionOutcome(0, 0, {Verdict.MATCHED: 1_000, Verdict.REPLAY: 870})
    outcome = replace(unit.outcome, partitions=(part,), copied_again=870)
    conclusion = conclude([outcome], ())
    shown = replace(report, conclusion=conclusion, units=(replace(unit, outcome=outcome),))
    assert "DUPLICATED" in render_html(shown)
    assert build_json_document(shown)["result"] == "duplicated"
    assert shown.exit_code == 0


def test_reports_of_sample_show_its_rate(report: RunReport) -> None:
    sampled = replace(report, sample=Sample(0.01))
    expected = "sample: 1% of the records, chosen by hash, the same on both sides"
    assert expected in "\n".join(printed(sampled, 200))
    assert expected in render_html(sampled)
    assert expected in render_markdown(sampled)
    rate = build_json_document(sampled)["flow_figures"][0]["records_per_second"]
    assert rate == pytest.approx(
        100 * build_json_document(report)["flow_figures"][0]["records_per_second"], rel=1e-3
    )


def test_reports_show_rates_of_keys(report: RunReport) -> None:
    (unit,) = report.units
    keys = [KeyCell(1, 9, 8, 4 * (n % 10 == 0), 0) for n in range(200)]
    affinity = AffinityOutcome(
        keys=200, keys_split=20, records_moved=80, cells=pool_key_cells(keys)
    )
    sample = Sample(0.01)
    outcome = replace(unit.outcome, affinity=affinity)
    sampled = replace(unit, outcome=outcome, bounds=compute_stated_bounds(outcome, sample))
    shown = replace(report, sample=sample, units=(sampled,))
    moved = "copies in another partition than their key: 5% (95 %: "
    quiet = "200 keys sampled, 0 out of order); of their 1,800 records, none out of order"
    detected = "out of order in their partition: "
    for text in ("\n".join(printed(shown, 200)), render_html(shown), render_markdown(shown)):
        assert moved in text
        assert "bootstrap over 200 keys)" in text
        assert quiet in text
        assert detected in text
    *table, _ = printed(shown)
    assert max(map(cell_len, table)) <= 80
    topic, _missing = build_json_document(shown)["topics"]
    assert topic["keys"] == {"seen": 200, "split": 20, "disordered": 0}
    assert topic["key_records"] == {
        "source_records": 1_800,
        "target_records": 1_600,
        "moved": 80,
        "out_of_order": 0,
        "broken_key_hashes": [],
    }
    (bound,) = [each for each in topic["bounds"] if each["sentence"].startswith(moved)]
    assert bound["name"] == "copies in another partition than their key"
    assert 0.02 < bound["lower_ratio"] < 0.05 < bound["upper_ratio"] < 0.08
    unordered = replace(sampled, outcome=replace(outcome, order_judged=False))
    topic, _missing = build_json_document(replace(shown, units=(unordered,)))["topics"]
    assert topic["key_records"]["out_of_order"] is None


def test_reports_without_judged_units_show_reason(report: RunReport) -> None:
    conclusion = conclude([], report.not_audited)
    empty = replace(report, units=(), conclusion=conclusion)
    *_, verdict = printed(empty)
    assert verdict.startswith("verdict: nothing could be audited: 1 topic target_missing")
    assert "NOTHING AUDITED" in render_html(empty)
    assert render_markdown(empty).startswith("# Replication audit: NOTHING AUDITED")
    assert build_json_document(empty)["complete_up_to"] is None


@pytest.mark.parametrize("suffix", [".html", ".md", ".json", ".HTML"])
def test_write_report_suffix_selects_format(report: RunReport, tmp_path: Path, suffix: str) -> None:
    target = check_report_path(tmp_path / f"report{suffix}")
    write_report(target, report)
    start = {".html": "<!doctype html>", ".md": "# Replication", ".json": "{\n"}[suffix.lower()]
    assert target.read_text(encoding="utf-8").startswith(start)
    assert [each.name for each in tmp_path.iterdir()] == [target.name]


def test_check_report_path_refuses_file_in_folder_without_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "report.md"
    file.write_text("of the last run")  # replaced, not written: its own permissions do not matter
    monkeypatch.setattr("os.access", lambda path, _mode: path != tmp_path)
    with pytest.raises(UserError, match=r"report\.md' cannot be written: permission denied"):
        check_report_path(file)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("report.pdf", "has an unknown suffix; expected .html, .md or .json"),
        ("report", "has an unknown suffix"),
        ("missing/report.md", "does not exist; create it first"),
        ("folder.md", "is a folder"),
    ],
)
def test_check_report_path_unwritable_raises_error(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder.md").mkdir()
    with pytest.raises(UserError, match=message):
        check_report_path(tmp_path / name)
