"""The page at `/` and the flows on it: what the web server asks of the exporter.

The page is one self-contained document without scripts. Nothing here waits for a cluster.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Protocol

from mm2slo_core.cutover.cutover_evidence import CutoverEvidence
from mm2slo_core.topology import Flow
from mm2slo_exporter.exposition_renderer import Snapshot

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #15803d; --bad: #b91c1c; --dim: #666 }
@media (prefers-color-scheme: dark) { :root { --good: #4ade80; --bad: #f87171; --dim: #aaa } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .4rem .8rem; border-bottom: 1px solid var(--line) }
tbody th { white-space: nowrap }
.number { text-align: right; font-variant-numeric: tabular-nums }
.running, .idle { color: var(--good) } .stopped { color: var(--bad) }
details { color: var(--dim) }
.unknown, .dim { color: var(--dim) }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_STATES = frozenset({"running", "idle", "stopped", "unknown"})
_TYPES_UNKNOWN = '<br><span class="dim">Streams and share groups: not known</span>'

_NAMES = 50
"""Of groups that are listed."""
_UNKNOWN = '<span class="dim">not known</span>'

_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

SECURITY_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
)


def render_page(flows: tuple[FlowOverview, ...]) -> str:
    """The page. Names come from configuration and clusters, so all of them are escaped."""
    rows = "\n".join(map(_row, flows)) or '<tr><td colspan="6">No flow is served here.</td></tr>'
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>mm2slo</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>mm2slo</h1>
<p>Replication of Apache Kafka MirrorMaker 2, as seen from the clusters.</p>
<div class="wide">
<table>
<thead><tr><th scope="col">Flow</th><th scope="col">State</th>
<th scope="col" class="number">Lag (records)</th><th scope="col" class="number">Lag (time)</th>
<th scope="col" class="number">Stalled partitions</th>
<th scope="col" class="number">Groups ready</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
<p><a href="/metrics">Metrics</a> · <a href="/readyz">Readiness</a> ·
<a href="/healthz">Health</a></p>
</body>
</html>
"""


def _row(overview: FlowOverview) -> str:
    state = overview.state if overview.state in _STATES else "unknown"
    reason = overview.reason if overview.ready else f"{overview.reason} (still reading)".lstrip()
    cells = (
        _count(overview.lag_records),
        _UNKNOWN if overview.lag_seconds is None else duration(overview.lag_seconds),
        _count(overview.stalled_partitions),
        _groups(overview),
    )
    numbers = "".join(f'<td class="number">{cell}</td>' for cell in cells)
    return (
        f'<tr><th scope="row">{escape(overview.flow.label)}</th>'
        f'<td><strong class="{state}">{escape(overview.state)}</strong> '
        f'<span class="dim">{escape(reason)}</span></td>{numbers}</tr>'
    )


def _count(value: int | None) -> str:
    return _UNKNOWN if value is None else f"{value:,}"


def _groups(overview: FlowOverview) -> str:
    if overview.groups is None or overview.groups_ready is None:
        return _UNKNOWN
    unknown = "" if overview.group_types_known else _TYPES_UNKNOWN
    unjudged = (
        f"<details><summary>{len(names):,} {what}</summary>"
        f"{escape(', '.join(names[:_NAMES]))}{', …' if len(names) > _NAMES else ''}</details>"
        for what, names in overview.unjudged
        if names
    )
    return f"{overview.groups_ready:,} of {overview.groups:,}{unknown}{''.join(unjudged)}"


def duration(seconds: float) -> str:
    """Seconds as people read them: `0.4 s`, `75 s`, `12 min`, `5.0 h`, `3.2 d`."""
    for limit, size, unit, digits in ((10, 1, "s", 1), (120, 1, "s", 0), (7200, 60, "min", 0)):
        if seconds < limit:
            return f"{seconds / size:.{digits}f} {unit}"
    size, unit = (3600, "h") if seconds < 2 * 86_400 else (86_400, "d")
    return f"{seconds / size:.1f} {unit}"


@dataclass(frozen=True, slots=True)
class FlowReadiness:
    """Whether everything a flow's figures need was read once or declared unreachable."""

    flow: Flow
    ready: bool
    waiting_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExporterReadiness:
    """Ready once each flow is."""

    ready: bool
    flows: tuple[FlowReadiness, ...]
    stale_flows: tuple[str, ...] = ()
    """Labels of the flows that are no longer evaluated: the process needs a restart."""


@dataclass(frozen=True, slots=True)
class FlowOverview:
    """One line of the page: a figure that is not known now is None."""

    flow: Flow
    state: str
    reason: str
    ready: bool
    lag_records: int | None
    lag_seconds: float | None
    stalled_partitions: int | None = None
    groups_ready: int | None = None
    groups: int | None = None
    unjudged: Sequence[tuple[str, Sequence[str]]] = ()
    """Names of groups outside `groups`, by what they are."""
    group_types_known: bool = True


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """What a reload came to; the message holds no secret."""

    done: bool
    message: str


class Site(Protocol):
    """The exporter as its web server sees it; each answer is at hand already."""

    def snapshot(self) -> Snapshot:
        """The newest finished exposition; from the start, with the exporter's own series."""
        ...

    def readiness(self) -> ExporterReadiness:
        """Which flow waits for what."""
        ...

    def overview(self) -> tuple[FlowOverview, ...]:
        """The flows, for the page."""
        ...

    def cutover_evidence(self, slug: str) -> CutoverEvidence | None:
        """What a cutover of a flow depends on; None before a round. KeyError: unknown flow."""
        ...

    def reload(self) -> ReloadResult:
        """Read the configuration again and apply it."""
        ...
