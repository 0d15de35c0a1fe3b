"""The report as one HTML document without scripts or external resources, light and dark."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from mm2slo_audit.audit_ports import RunReport
from mm2slo_audit.report.run_figures import (
    UNKNOWN,
    FigureColumn,
    Figures,
    Latency,
    TopicFigures,
    compute_flow_figures,
    compute_topic_figures,
    format_bracket,
    format_coverage,
    format_duration,
    format_evidence,
    format_throughput,
    format_window,
    shown_columns,
)
from mm2slo_core.audit.audit_conclusion import Result
from mm2slo_core.audit.unit_outcome import FAULTS, PERCENTILES, percentile_name
from mm2slo_core.reporting.report_entry import utc_text

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --good: #15803d; --bad: #b91c1c;
  --warn: #a16207; --dim: #666 }
@media (prefers-color-scheme: dark) { :root { --good: #4ade80; --bad: #f87171; --warn: #facc15;
  --dim: #aaa } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 84rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.2rem; margin-top: 2.2rem } h3 { font-size: 1rem }
.verdict { border-left: .35rem solid; padding: .6rem 1rem; background: var(--soft) }
.verdict p { margin: .2rem 0; color: CanvasText }
.clean { color: var(--good) } .faulty { color: var(--bad) } .nothing { color: var(--warn) }
.dim, dt { color: var(--dim) } .wide { overflow-x: auto }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem } dd { margin: 0 }
table { border-collapse: collapse; width: 100%; font-size: .93rem }
th, td { text-align: left; padding: .3rem .45rem; border-bottom: 1px solid var(--line);
  vertical-align: top }
thead th { white-space: nowrap } td.number, th.number { text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap }
details { margin: .6rem 0; border: 1px solid var(--line); border-radius: .4rem;
  padding: .4rem .8rem }
summary { cursor: pointer; font-weight: 600 } code { font-size: .9em }
@media print { details::details-content { content-visibility: visible } }
"""

_CLASSES: Final = {
    Result.CLEAN: "clean",
    Result.DUPLICATED: "nothing",
    Result.FAULTS: "faulty",
    Result.NOTHING_AUDITED: "nothing",
}


def render_html(report: RunReport) -> str:
    """The complete report. Names from configuration and clusters are escaped."""
    title = f"Replication audit: {report.conclusion.result}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
{"".join(_body(report))}
</body>
</html>
"""


def _body(report: RunReport) -> Iterator[str]:
    topics = [compute_topic_figures(unit, report.sample) for unit in report.units]
    yield "<h1>Replication audit</h1>\n"
    yield f'<div class="verdict {_CLASSES[report.conclusion.result]}">'
    yield f"<strong>{report.conclusion.result.upper()}</strong>"
    yield f"<p>{escape(report.conclusion.line)}</p></div>\n"
    yield _facts(report)
    if topics:
        yield "<h2>Flows</h2>\n"
        yield _counts("Flow", compute_flow_figures(report))
        yield "<h2>Topics</h2>\n"
        yield _counts("Topic", [topic.figures for topic in topics])
        yield "<h2>Latency</h2>\n"
        yield '<p class="dim">Lower and upper bounds: a record arrived between two polls of the '
        yield "watermark timeline.</p>\n"
        yield _latencies(topics)
        yield "<h2>Topic details</h2>\n"
        yield from map(_topic, topics)
    if report.not_audited:
        yield "<h2>Not audited</h2>\n"
        yield _table(
            ("Topic", "Flows", "Reason", "Detail"),
            (
                (
                    each.target_topic,
                    ", ".join(flow.label for flow in each.flows),
                    each.reason,
                    each.detail,
                )
                for each in report.not_audited
            ),
        )


def _facts(report: RunReport) -> str:
    header, until = report.header, report.conclusion.complete_up_to
    facts = {
        "Flows": ", ".join(flow.label for flow in header.flows),
        "Window": format_window(report),
        "Complete up to": "unknown" if until is None else utc_text(until),
        "Coverage": format_coverage(report),
        "Run": f"{header.id}, took {format_duration(report.finished_at - header.started_at)}",
        "Running connectors": "; ".join(report.notes),
        "Versions": ", ".join(f"{name} {number}" for name, number in header.versions.items()),
    }
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items() if value
    )
    return f"<dl>{rows}</dl>\n"


def _counts(first: str, rows: Sequence[Figures]) -> str:
    shown = shown_columns(rows)
    lines = []
    for figures in rows:
        cells = "".join(_count(figures, column) for column in shown)
        lines.append(f'<tr><th scope="row">{escape(figures.name)}</th>{cells}</tr>')
    return _scrollable_table(_heads([first], [each.heading for each in shown]), lines)


def _count(figures: Figures, column: FigureColumn) -> str:
    found = bool(column.text or column.count(figures))
    kind = "dim" if not found else "faulty" if column.is_fault else ""
    return f'<td class="number {kind}">{escape(column.cell(figures))}</td>'


def _latencies(topics: Sequence[TopicFigures]) -> str:
    names = [percentile_name(q) for q in PERCENTILES]
    heads = _heads(["Topic", "Latency"], [*names, "Average", "Records"])
    lines = []
    for topic in topics:
        for kind, found in (
            ("end to end", topic.figures.end_to_end),
            ("transfer", topic.figures.transfer),
        ):
            cells = "".join(f'<td class="number">{escape(cell)}</td>' for cell in _cells(found))
            name = escape(topic.figures.name)
            lines.append(f'<tr><th scope="row">{name}</th><td>{kind}</td>{cells}</tr>')
    return _scrollable_table(heads, lines)


def _cells(found: Latency) -> Iterator[str]:
    for q in PERCENTILES:
        yield format_bracket(found.percentiles[q])
    yield format_bracket(found.average)
    yield f"{found.records:,}" if found.records else UNKNOWN


def _topic(topic: TopicFigures) -> str:
    outcome = topic.unit.outcome
    sources = ", ".join(f"{flow.label} from {name}" for flow, name in topic.flows)
    parts = [
        f"<details{' open' if _faulty(topic) else ''}><summary>{escape(topic.figures.name)}",
        f"</summary><p>{escape(sources)}; {escape(format_throughput(topic.figures.throughput))};",
        f" complete up to {utc_text(topic.complete_up_to)}</p><ul>",
        *(f"<li>{escape(line)}</li>" for line in topic.quality),
        "</ul>",
        "<h3>Partitions</h3>",
        _counts("Partition", topic.partitions),
    ]
    if outcome.replays:
        parts.append("<h3>Replayed blocks</h3>")
        parts.append(
            _table(
                ("Target partition", "From offset", "To offset", "Records"),
                (
                    (str(each.partition), str(each.start), str(each.end), f"{each.size:,}")
                    for each in outcome.replays
                ),
            )
        )
    if outcome.evidence:
        parts.append("<h3>Evidence</h3>")
        parts.append(
            _table(
                ("Verdict", "Record"),
                ((each.verdict, format_evidence(outcome.scope, each)) for each in outcome.evidence),
            )
        )
    if outcome.affinity.broken_keys:
        hashes = ", ".join(f"{each & (1 << 64) - 1:016x}" for each in outcome.affinity.broken_keys)
        parts.append(f"<h3>Keys with broken affinity or order</h3><p><code>{hashes}</code></p>")
    parts.append("</details>\n")
    return "".join(parts)


def _faulty(topic: TopicFigures) -> bool:
    return any(topic.figures.counts.get(each) for each in FAULTS)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return _scrollable_table(_heads(headings, ()), lines)


def _heads(left: Sequence[str], right: Sequence[str]) -> str:
    heads = [f'<th scope="col">{escape(each)}</th>' for each in left]
    heads += [f'<th scope="col" class="number">{escape(each)}</th>' for each in right]
    return "".join(heads)


def _scrollable_table(heads: str, lines: Iterable[str]) -> str:
    rows = "\n".join(lines)
    return (
        f'<div class="wide"><table><thead><tr>{heads}</tr></thead>\n'
        f"<tbody>{rows}</tbody></table></div>\n"
    )
