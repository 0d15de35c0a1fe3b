"""What measurements found: runs, cells of a matrix, and their comparison, as JSON and as documents.

Rates are records per second, times epoch seconds, durations seconds. None means not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log10
from pathlib import Path
from statistics import median
from typing import Final

from pydantic import TypeAdapter, ValidationError

from mm2slo_core.perf.perf_schedule import PerfCell, PerfMode
from mm2slo_core.perf.perf_statistics import LEVEL, MIN_PAIRS, Latencies, PairedRatio, compare_pairs
from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_core.table_document import DocumentTable, html_document, markdown_document
from mm2slo_core.user_errors import UserError

FORMAT: Final = 1
PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class PerfProbe:
    """A rate that was tried."""

    rate: float
    sustained: bool
    p99: float | None


@dataclass(frozen=True, slots=True)
class PerfLedger:
    """Each record of a run has a number, which its copies show. Warm-up included."""

    sent: int
    acknowledged: int
    arrived: int
    missing: int
    """Acknowledged and not arrived when the run ended."""
    duplicates: int
    reordered: int
    """Arrived after a later one of its partition."""
    moved: int
    """Arrived in a partition other than its own."""
    by_partition: Mapping[int, int] = field(default_factory=dict)
    """Records that arrived, by partition of the copy."""


@dataclass(slots=True, kw_only=True)
class PerfRun:
    """One run of a cell."""

    started_at: float
    rate: float
    """Stated, sustained, or copied, by the mode."""
    latencies: Latencies
    sent: Sequence[int] = ()
    """Records by second, of the part that was measured."""
    arrived: Sequence[int] = ()
    ledger: PerfLedger
    slip: float
    """The longest delay of a record by the generator itself."""
    reader_delay: float
    """The longest that an arrival may have waited for its reader."""
    cpu: float | None = None
    """Busy share of this machine while it was measured."""
    limit: str = ""
    """What a sustained or drained rate ran into, by which evidence."""
    probes: Sequence[PerfProbe] = ()
    problems: list[str] = field(default_factory=list)
    """Why the run is rejected."""


@dataclass(slots=True, kw_only=True)
class PerfCellResult:
    """A cell's runs, in the order of the blocks."""

    cell: PerfCell
    runs: list[PerfRun] = field(default_factory=list)
    retried: int = 0
    """Rejected runs that were replaced by a second try."""


@dataclass(slots=True, kw_only=True)
class PerfReport:
    """A measurement; the first cell is what others are compared with."""

    flow: str
    place: str
    machine: str
    version: str
    started_at: float
    cells: list[PerfCellResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    format: int = FORMAT

    def as_json(self) -> str:
        return _REPORT.dump_json(self, indent=1).decode()

    @classmethod
    def parse(cls, text: str, name: str) -> PerfReport:
        """Raises UserError for text that is no measurement of this version."""
        try:
            found = _REPORT.validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            what = "is missing" if first["type"] == "missing" else "has the wrong type"
            raise UserError(
                f"{name} is no measurement of `mm2slo perf`: "
                f"{f'{where} {what}' if where else 'the file is not a JSON object'}; "
                "expected the file that `mm2slo perf run --report FILE.json` writes"
            ) from None
        if found.format != FORMAT or not found.cells:
            raise UserError(f"{name}: format {found.format}, {len(found.cells)} cells; "
                            f"expected format {FORMAT} with a cell: measure again")  # fmt: skip
        return found


_REPORT: Final = TypeAdapter(PerfReport)


def read_measurement(file: Path) -> PerfReport:
    """Raises UserError for a file that is no measurement, or cannot be read."""
    try:
        return PerfReport.parse(file.read_text(encoding="utf-8"), str(file))
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{file} cannot be read: byte {error.start} is not UTF-8") from None


def good_runs(runs: Sequence[PerfRun]) -> list[PerfRun]:
    """Those that were not rejected."""
    return [each for each in runs if not each.problems]


def figures(mode: PerfMode) -> Mapping[str, Callable[[PerfRun], float]]:
    """What runs of a mode are compared by."""
    if mode is PerfMode.LATENCY:
        return {
            "p50": lambda run: run.latencies.percentile(50) or 0.0,
            "p99": lambda run: run.latencies.percentile(99) or 0.0,
        }
    return {"rate": lambda run: run.rate}


def compare(base: PerfCellResult, other: PerfCellResult) -> dict[str, PairedRatio | None]:
    """The figures of *other* as multiples of those of *base*; runs are pairs in their order.

    A pair with a rejected run does not count. Rates are compared in bytes.
    """
    pairs = [
        (a, b)
        for a, b in zip(base.runs, other.runs, strict=False)
        if not (a.problems or b.problems)
    ]
    size, other_size = base.cell.load.record_size, other.cell.load.record_size
    scale = 1.0 if base.cell.load.mode is PerfMode.LATENCY else other_size / size
    return {
        name: compare_pairs([figure(a) for a, _ in pairs], [scale * figure(b) for _, b in pairs])
        for name, figure in figures(base.cell.load.mode).items()
    }


def ratio_text(found: PairedRatio | None) -> str:
    """What was shown, with its interval."""
    if found is None:
        return f"not known: less than {MIN_PAIRS} pairs"
    interval = f"{found.low:.3g} to {found.high:.3g}, {found.pairs} pairs"
    if found.is_different:
        return f"{found.ratio:.3g} times ({interval})"
    return f"no difference shown ({interval})"


def perf_markdown(report: PerfReport) -> str:
    """The report for terminals and documents."""
    return markdown_document(_title(report), _tables(report), _notes(report))


def perf_html(report: PerfReport) -> str:
    """The report as a page, with latency histograms and throughput curves."""
    return html_document(_title(report), _tables(report), _notes(report))


def _title(report: PerfReport) -> str:
    return f"Replication of {report.flow}: {report.cells[0].cell.load.mode}"


def _notes(report: PerfReport) -> Iterator[str]:
    yield from report.notes
    yield f"Intervals are at {LEVEL:.0%}, by Student, over pairs of neighbouring runs."
    yield "Latency is from the intended time of sending to the arrival at a consumer of the target."


def _tables(report: PerfReport) -> Iterator[DocumentTable]:
    first = report.cells[0].cell
    load = first.load
    settings = ", ".join(f"{key}={value}" for key, value in first.properties.items())
    yield DocumentTable(
        "Measurement",
        ("what", "value"),
        (
            ("place", report.place),
            ("machine", report.machine),
            ("started", utc_text(round(report.started_at) * 1000)),
            ("records", f"{load.record_size:,} bytes, {load.partitions} partitions"),
            ("round trip to the source", _known(first.round_trip_ms, " ms")),
            ("tasks.max", _known(first.tasks)),
            ("properties", settings or "as configured"),
            ("mm2slo", report.version),
        ),
    )
    mode = load.mode
    if mode is PerfMode.LATENCY:
        rows = [_latency_row(each) for each in report.cells]
        header = ("cell", "runs", *(f"p{each:g}" for each in PERCENTILES), "CPU")
    else:
        rows = [_rate_row(each) for each in report.cells]
        header = ("cell", "runs", "records/s", "lowest to highest", "MB/s", "CPU", "limit")
    drawing = "".join(map(_drawing, report.cells[:1])) if len(report.cells) == 1 else ""
    yield DocumentTable("Latency" if mode is PerfMode.LATENCY else "Rate", header, rows, drawing)
    if len(report.cells) > 1:
        compared = [
            (each.cell.name, name, ratio_text(ratio))
            for each in report.cells[1:]
            for name, ratio in compare(report.cells[0], each).items()
        ]
        title = f"Compared with {report.cells[0].cell.name}"
        yield DocumentTable(title, ("cell", "figure", "multiple"), compared)
    yield DocumentTable(
        "Records, and what the measurement itself did",
        ("cell", "sent", "missing", "duplicates", "out of order", "moved", "slip", "reader"),
        [_ledger_row(each) for each in report.cells],
    )
    rejected = [
        (each.cell.name, problem)
        for each in report.cells
        for run in each.runs
        for problem in run.problems
    ]
    if rejected:
        yield DocumentTable("Rejected runs", ("cell", "why"), rejected)


def _known(value: float | None, unit: str = "") -> str:
    return "not known" if value is None else f"{value:g}{unit}"


def _counted(result: PerfCellResult) -> str:
    good, every = len(good_runs(result.runs)), len(result.runs)
    text = f"{good}" if good == every else f"{good} of {every}"
    return text + (f", {result.retried} tried again" if result.retried else "")


def _latency_row(result: PerfCellResult) -> tuple[str, ...]:
    good = good_runs(result.runs)
    merged = Latencies.merged([each.latencies for each in good])
    values = (_milliseconds(merged.percentile(each)) for each in PERCENTILES)
    return result.cell.name, _counted(result), *values, _cpu(good)


def _rate_row(result: PerfCellResult) -> tuple[str, ...]:
    good = good_runs(result.runs)
    rates = sorted(each.rate for each in good)
    limits = sorted({each.limit for each in good if each.limit})
    if not rates:
        return result.cell.name, _counted(result), *["not known"] * 5
    return (
        result.cell.name,
        _counted(result),
        f"{median(rates):,.0f}",
        f"{rates[0]:,.0f} to {rates[-1]:,.0f}",
        f"{median(rates) * result.cell.load.record_size / 1e6:,.1f}",
        _cpu(good),
        "; ".join(limits) or "not known",
    )


def _ledger_row(result: PerfCellResult) -> tuple[str, ...]:
    ledgers = [each.ledger for each in result.runs]
    totals = (
        sum(getattr(each, name) for each in ledgers)
        for name in ("sent", "missing", "duplicates", "reordered", "moved")
    )
    slip = max((each.slip for each in result.runs), default=None)
    delay = max((each.reader_delay for each in result.runs), default=None)
    counts = (f"{each:,}" for each in totals)
    return result.cell.name, *counts, _milliseconds(slip), _milliseconds(delay)


def _milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return "not known"
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _cpu(runs: Sequence[PerfRun]) -> str:
    shares = [each.cpu for each in runs if each.cpu is not None]
    return f"{median(shares):.0%}" if shares else "not known"


_WIDTH: Final = 600
_HEIGHT: Final = 150
_BARS: Final = 60


def _drawing(result: PerfCellResult) -> str:
    good = good_runs(result.runs)
    if not good:
        return ""
    merged = Latencies.merged([each.latencies for each in good])
    curve = _curve(good[0].sent, good[0].arrived)
    return f"{_histogram(merged)}{curve}"


def _histogram(latencies: Latencies) -> str:
    """Records by latency, on a logarithmic axis."""
    bounds = latencies.by_bound()
    if not bounds:
        return ""
    low, high = log10(min(bounds)), log10(max(bounds) * 1.01)
    bars = [0] * _BARS
    for bound, count in bounds.items():
        bars[min(int((log10(bound) - low) / (high - low) * _BARS), _BARS - 1)] += count
    step, top = _WIDTH / _BARS, max(bars)
    shapes = "".join(
        f"<rect x='{number * step:.1f}' y='{_HEIGHT * (1 - count / top):.1f}' "
        f"width='{step - 1:.1f}' height='{_HEIGHT * count / top:.1f}' fill='#4a7ebb'/>"
        for number, count in enumerate(bars)
        if count
    )
    ends = (_milliseconds(10**low), _milliseconds(10**high))
    return _svg("Records by latency", shapes, ends)


def _curve(sent: Sequence[int], arrived: Sequence[int]) -> str:
    """Records by second: sent (grey) and arrived (blue)."""
    top, length = max((*sent, *arrived), default=0), max(len(sent), len(arrived))
    if not top or length < 2:
        return ""
    lines = "".join(
        f"<polyline fill='none' stroke='{colour}' stroke-width='2' points='"
        + " ".join(
            f"{number * _WIDTH / (length - 1):.1f},{_HEIGHT * (1 - count / top):.1f}"
            for number, count in enumerate(counts)
        )
        + "'/>"
        for counts, colour in ((sent, "#888"), (arrived, "#4a7ebb"))
    )
    ends = ("0 s", f"{length} s; top: {top:,} records/s")
    return _svg("Records per second: sent (grey), arrived (blue)", lines, ends)


def _svg(title: str, shapes: str, ends: tuple[str, str]) -> str:
    left, right = ends
    return (
        f"<svg viewBox='0 -30 {_WIDTH} {_HEIGHT + 60}' role='img'><title>{title}</title>"
        f"<text x='0' y='-8' font-size='20' fill='currentColor'>{title}</text>{shapes}"
        f"<text x='0' y='{_HEIGHT + 24}' font-size='20' fill='currentColor'>{left}</text>"
        f"<text x='{_WIDTH}' y='{_HEIGHT + 24}' font-size='20' text-anchor='end' "
        f"fill='currentColor'>{right}</text></svg>"
    )
