"""A sample report of three flows over a month, and sample views of the status page."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any, Final, NamedTuple

from minute_history import indicator, objective

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import Evidence, Verdict
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.objectives.objective import Objective
from mm2slo_core.quantity_text import share_text, signed_share_text
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.reporting.entry_evaluation import (
    AuditedUnit,
    IndicatorData,
    confirmation,
    evaluate_entries,
)
from mm2slo_core.reporting.report_entry import Entry, worst_first
from mm2slo_core.reporting.report_query import ReportQuery, day_spans
from mm2slo_core.reporting.slo_report import EntryDetail, Report, by_day, incidents
from mm2slo_core.reporting.step_counts import MINUTE_MS, SpanCounts, StepCounts
from mm2slo_core.topology import Flow
from mm2slo_report.flow_audit_figures import LatencyEstimate
from mm2slo_report.rendering.page_views import (
    AuditView,
    FlowStatusView,
    GroupLag,
    GroupView,
    LatencyView,
    RecordBounds,
    RecordLag,
)
from mm2slo_report.rendering.report_text import burn_rate_text, count_text
from mm2slo_store.audit_rows import EvidencePlace, Run, RunHeader, RunState, StoredEvidence

NOW: Final = round(datetime(2026, 7, 14, 10, 30, tzinfo=UTC).timestamp() * 1000)
DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
START: Final = NOW - 28 * DAY_MS
WEST, EAST, NORTH = Flow("us", "eu"), Flow("eu", "us"), Flow("us", "ap")
LATENCY: Final = SliKey(Sli.LATENCY, "10s")
PER_MINUTE: Final = 60


@dataclass(frozen=True)
class SteadyHistory:
    """Good events every minute from *since* to *until*, except during *outages*."""

    outages: tuple[Span, ...] = ()
    since: int = START - 28 * DAY_MS
    until: int = NOW
    per_minute: int = PER_MINUTE

    def count(self, span: Span) -> SpanCounts:
        """Counts computed from lengths, for speed."""
        minutes = _shared(span, Span(self.since, self.until))
        bad = sum(_shared(span, each) for each in self.outages)
        return SpanCounts(
            good=float((minutes - bad) * self.per_minute),
            total=float(minutes * self.per_minute),
            minutes=minutes,
        )

    def bad_minutes(self) -> list[StepCounts]:
        """The minutes of the outages."""
        return [
            StepCounts(at, 0, self.per_minute, 0)
            for each in self.outages
            for at in range(each.start, each.end, MINUTE_MS)
        ]


def _shared(span: Span, other: Span) -> int:
    return max(min(span.end, other.end) - max(span.start, other.start), 0) // MINUTE_MS


def outage(days_ago: float, minutes: int) -> Span:
    """An outage that started *days_ago*."""
    start = NOW - round(days_ago * 24 * 60) * MINUTE_MS
    return Span(start, start + minutes * MINUTE_MS)


LONG_OUTAGE: Final = outage(9.3, 260)
SHORT_OUTAGE: Final = outage(21.6, 35)
RUNNING_OUTAGE: Final = Span(NOW - 12 * MINUTE_MS, NOW)

HISTORIES: Final[dict[tuple[Flow, SliKey, float], SteadyHistory]] = {
    (WEST, SliKey(Sli.AVAILABILITY), 0.999): SteadyHistory((SHORT_OUTAGE, LONG_OUTAGE)),
    (WEST, LATENCY, 0.99): SteadyHistory((SHORT_OUTAGE, LONG_OUTAGE)),
    (WEST, SliKey(Sli.COMPLETENESS), 0.9999): SteadyHistory(),
    (EAST, SliKey(Sli.AVAILABILITY), 0.999): SteadyHistory((RUNNING_OUTAGE,)),
    (EAST, LATENCY, 0.99): SteadyHistory((RUNNING_OUTAGE,)),
    (EAST, SliKey(Sli.CHECKPOINT_FRESHNESS), 0.99): SteadyHistory(per_minute=0),
    (NORTH, SliKey(Sli.AVAILABILITY), 0.999): SteadyHistory(since=NOW - 3 * DAY_MS),
    (NORTH, LATENCY, 0.99): SteadyHistory(until=START - DAY_MS),
}
"""At least one each of breached, at risk, met, idle, new and no data."""

FACTS: Final = (
    AuditedUnit(
        run_id="20260713T000000Z-0a1b2c",
        complete_up_to=NOW - 10 * HOUR_MS,
        counts={Verdict.MATCHED: 1_204_881, Verdict.LOST: 2},
        loss_below=None,
    ),
)


def _query_and_histories() -> tuple[ReportQuery, dict[Objective, SteadyHistory]]:
    histories = {
        objective(target, flow=flow, key=key): history
        for (flow, key, target), history in HISTORIES.items()
    }
    return ReportQuery(objectives=tuple(histories), as_of=NOW, zone=UTC), histories


def sample_entries() -> tuple[Entry, ...]:
    """The entries, worst first."""
    query, histories = _query_and_histories()
    data = {
        indicator(each): IndicatorData(
            counts={span: history.count(span) for span in query.spans()},
            known_since=history.since,
            last_seen=history.until,
            confirmation=confirmation(FACTS) if each.flow == WEST else None,
        )
        for each, history in histories.items()
    }
    return worst_first(evaluate_entries(query, data))


def sample_report() -> Report:
    """The report of all objectives."""
    return Report(
        as_of=NOW,
        source="recorder",
        zone="UTC",
        window=None,
        entries=sample_entries(),
        warnings=("Prometheus keeps 15 d, less than the window of 28 d",),
    )


def sample_details() -> tuple[EntryDetail, ...]:
    """Details of objectives with outages."""
    _, histories = _query_and_histories()
    found = []
    for entry in sample_entries():
        history = histories[entry.objective]
        if history.outages:
            parts = day_spans(entry.window, UTC)
            allowed = entry.budget.total_events
            counts = {part: history.count(part) for part in parts}
            found.append(
                EntryDetail(
                    entry=entry,
                    days=by_day(parts, counts, allowed),
                    incidents=incidents(
                        history.bad_minutes(), entry.budget, entry.objective.key.sli
                    ),
                )
            )
    return tuple(found)


FLOWS: Final = (
    FlowStatusView(
        flow=WEST,
        state="running",
        lag_records=1_532.0,
        lag_seconds=2.4,
        headroom_seconds=604_000.0,
    ),
    FlowStatusView(
        flow=EAST,
        state="stopped",
        lag_records=88_120.0,
        lag_seconds=712.0,
        headroom_seconds=86_000.0,
    ),
    FlowStatusView(flow=NORTH, state="unknown"),
)

GROUPS: Final = (
    GroupView(
        flow=WEST,
        group="billing",
        ready=True,
        checkpoint_lag_records=120.0,
        redelivery_records=RecordBounds(40.0, 160.0),
        unreplicated=RecordLag(1_183.0, 20.0),
        lag=GroupLag(RecordLag(307.0, 42.0), RecordLag(1_490.0, None)),
    ),
    GroupView(
        flow=EAST,
        group="search-indexer",
        ready=False,
        reasons=("checkpoint_stale", "would_skip_records"),
        skipped_records=RecordBounds(12.0, 40.0),
        checkpoint_lag_records=91_004.0,
        redelivery_records=RecordBounds(90_000.0, 91_400.0),
    ),
    GroupView(flow=NORTH, group="ledger", ready=None),
)


def _lost(offset: int, timestamp: int) -> StoredEvidence:
    found = Evidence(Verdict.LOST, Side.SOURCE, 0, 3, offset, timestamp, 0, None)
    place = EvidencePlace(0, "20260713T000000Z-0a1b2c", 0, 0)
    return StoredEvidence(place, "us.orders", WEST, found)


AUDITS: Final = (
    AuditView(
        run=Run(
            RunHeader(
                id="20260713T000000Z-0a1b2c",
                flows=(WEST,),
                window=Window(NOW - 34 * HOUR_MS, NOW - 10 * HOUR_MS),
                started_at=NOW,
                sample_rate=1.0,
                salt=0,
                config_hash="",
            ),
            RunState.FINISHED,
            verdict_line="faults: 2 lost; 1,204,883 of 1,204,883 records judged",
            complete_up_to=NOW - 10 * HOUR_MS,
        ),
        counts={"matched": 1_204_881, "lost": 2},
        faults=2,
        problems=("us.audit-log (authorization: Describe was refused)",),
        evidence=(
            _lost(8_811_204, NOW - 20 * HOUR_MS),
            _lost(8_811_205, NOW - 20 * HOUR_MS + 41),
        ),
    ),
)

LATENCIES: Final = (
    LatencyView(
        flow=WEST,
        origin="audit of 2026-07-13T00:00:00Z to 2026-07-14T00:00:00Z",
        records=1_204_881,
        percentiles={
            0.5: LatencyEstimate(0.081, 0.126),
            0.9: LatencyEstimate(0.31, 0.42),
            0.95: LatencyEstimate(0.55, 0.74),
            0.99: LatencyEstimate(1.9, 2.6),
            0.999: LatencyEstimate(None, 31.0),
        },
    ),
)
Entries = Sequence[dict[str, Any]]

HTML_FIELDS: Final = {
    "sli_ratio": "sli_ratio",
    "objective_ratio": "objective_ratio",
    "events.bad": "bad",
    "events.total": "total",
    "budget.remaining_ratio": "budget_remaining_ratio",
    "burn_rate.1h": "burn_rate_1h",
    "trend_vs_previous_window.sli_ratio": "previous_sli_ratio",
    "coverage.ratio": "coverage_ratio",
}
"""Fields of an HTML row by JSON path, with their CSV columns."""

_CSV_FIELDS: Final = HTML_FIELDS | {
    "events.good": "good",
    "events.unknown": "unknown",
    "events.excluded": "excluded",
    "budget.consumed_ratio": "budget_consumed_ratio",
    "budget.total_events": "budget_total_events",
    "budget.remaining_events": "budget_remaining_events",
    "budget.total_seconds": "budget_total_seconds",
    "coverage.samples": "samples",
    "coverage.expected_samples": "expected_samples",
}
_COUNTS: Final = re.compile(r"([\d,.]+) good, ([\d,.]+) bad, ([\d,.]+) unknown, ([\d,.]+) excluded")


def check_csv(text: str, entries: Entries) -> None:
    """Every digit matches JSON."""
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["record"] == "objective"]
    assert [row["id"] for row in rows] == [each["id"] for each in entries]
    for row, entry in zip(rows, entries, strict=True):
        for path, column in _CSV_FIELDS.items():
            assert _same(row[column], _at(entry, path)), (entry["id"], path)
        assert row["status"] == entry["status"]
        assert row["status_reason"] == entry["status_reason"]
        assert row["as_of"] == entry["as_of"]
        assert row["window_start"] == entry["window"]["start"]
        assert row["budget_remaining_seconds"] == (
            ""
            if entry["budget"]["remaining_seconds"] is None
            else f"{Decimal(repr(entry['budget']['remaining_seconds'])):f}"
        )


def check_html(html: str, entries: Entries) -> None:
    """The `value` attributes match JSON exactly, and the texts match its values."""
    document = Document(html)
    rows = document.rows
    assert list(rows) == [each["id"] for each in entries]
    for entry in entries:
        cells_of_row = rows[entry["id"]]
        for path in HTML_FIELDS:
            assert _same(cells_of_row[path].value, _at(entry, path)), (entry["id"], path)
        assert cells_of_row["sli_ratio"].text == share_text(entry["sli_ratio"])
        assert cells_of_row["events.bad"].text == count_text(entry["events"]["bad"])
        assert cells_of_row["events.total"].text == count_text(entry["events"]["total"])
        assert cells_of_row["budget.remaining_ratio"].text.startswith(
            signed_share_text(entry["budget"]["remaining_ratio"])
        )
    named = [each.attributes for each in document.elements if "data-slo" in each.attributes]
    assert [each["data-status"] for each in named] == [each["status"] for each in entries]


def check_markdown(text: str, entries: Entries) -> None:
    """The texts match the values of JSON."""
    header, *rows = cells(text)
    assert len(rows) == len(entries)
    for row, entry in zip(rows, entries, strict=True):
        row_texts = dict(zip(header, row, strict=True))
        assert row_texts["Status"] == entry["status"].replace("_", " ")
        assert row_texts["Flow"] == entry["flow"]["name"]
        assert row_texts["Measured"] == share_text(entry["sli_ratio"])
        assert row_texts["Bad events"] == count_text(entry["events"]["bad"])
        assert row_texts["Events"] == count_text(entry["events"]["total"])
        assert row_texts["Remaining budget"].startswith(
            signed_share_text(entry["budget"]["remaining_ratio"])
        )
        assert row_texts["Burn rate (1h)"] == burn_rate_text(entry["burn_rate"]["1h"])
        assert row_texts["Coverage"] == share_text(entry["coverage"]["ratio"])
    names = ("good", "bad", "unknown", "excluded")
    counted = sorted(_COUNTS.findall(text))
    assert counted == sorted(
        tuple(count_text(each["events"][name]) for name in names) for each in entries
    )


def _at(entry: dict[str, Any], path: str) -> Any:
    found: Any = entry
    for part in path.split("."):
        found = None if found is None else found[part]
    return found


def _same(text: str, value: float | None) -> bool:
    return text == "" if value is None else float(text) == value


VOID = frozenset({"meta", "link", "input", "br", "hr", "img"})


class Data(NamedTuple):
    """A `data` element: its value attribute and its text."""

    value: str
    text: str


class Element(NamedTuple):
    """A tag with its attributes."""

    tag: str
    attributes: dict[str, str]


class Document(HTMLParser):
    """Elements, texts and markup errors of an HTML document."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.faults: list[str] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self._row: str | None = None
        self._data: tuple[str, str] | None = None
        self.rows: dict[str, dict[str, Data]] = {}
        self.feed(html)
        self.close()
        self.faults += [f"<{tag}> is never closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element starts."""
        found = {name: value or "" for name, value in attrs}
        if len(found) < len(attrs):
            self.faults.append(f"<{tag}> has an attribute twice")
        self.elements.append(Element(tag, found))
        if tag not in VOID:
            self._open.append(tag)
        if "data-slo" in found:
            self._row = found["data-slo"]
            self.rows[self._row] = {}
        if tag == "data":
            self._data = (found["data-field"], found["value"])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """`<path/>`."""
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        """An element ends."""
        if not self._open or self._open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self._open[-1:]}")
        else:
            self._open.pop()
        if tag == "tr":
            self._row = None

    def handle_data(self, data: str) -> None:
        """Text."""
        if "style" not in self._open:
            self.texts.append(data)
        if self._data is not None:
            if self._row is not None:
                self.rows[self._row][self._data[0]] = Data(self._data[1], data)
            self._data = None

    @property
    def text(self) -> str:
        """All visible text."""
        return " ".join(" ".join(self.texts).split())


def cells(markdown: str) -> list[list[str]]:
    """The unescaped cells of the first table, without the separator row."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    end = next(
        (place for place in range(2, len(lines)) if set(lines[place]) <= set("|- ")), len(lines) + 1
    )
    return [
        [re.sub(r"\\(.)", r"\1", cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for place, line in enumerate(lines[: end - 1])
        if place != 1
    ]
