"""Which consumer groups have no series of their own: by configuration, or by the series limit."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from mm2slo_exporter.exposition import count_series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mm2slo_exporter.exposition import Family
    from mm2slo_exporter.state.flow_report import FlowReport


def hide_other_groups(report: FlowReport, shows: Callable[[str], bool]) -> FlowReport:
    """The report with only the groups that *shows* accepts."""
    hidden = frozenset(group for group in _readiness(report) if not shows(group))
    return replace(report, hidden_groups=hidden) if hidden else report


def hide_groups_over_limit(
    reports: Sequence[FlowReport], families: Iterable[Family], series_limit: int
) -> list[FlowReport]:
    """Hide groups until *families*, made of *reports*, are within the limit or none is left.

    Groups that are ready to fail over are hidden first, from the end of their names.
    """
    found = list(families)
    excess = count_series(found) - series_limit
    sizes = _series_per_group(found)
    flows = {report.flow.label: set(report.hidden_groups) for report in reports}
    shown = sorted(
        (
            (ready, group, report.flow.label)
            for report in reports
            for group, ready in _readiness(report).items()
            if group not in report.hidden_groups
        ),
        reverse=True,
    )
    for _ready, group, flow in shown:
        if excess <= 0:
            break
        flows[flow].add(group)
        excess -= sizes[flow, group]
    return [
        replace(report, hidden_groups=frozenset(flows[report.flow.label])) for report in reports
    ]


def _readiness(report: FlowReport) -> dict[str, bool]:
    """Whether each group is ready to fail over; groups without a verdict are not blocked."""
    return {
        **{each.group: True for each in report.group_lags},
        **{each.group: each.readiness.ready for each in report.groups},
    }


def _series_per_group(families: Iterable[Family]) -> Counter[tuple[str, str]]:
    """The number of series by flow label and group."""
    sizes: Counter[tuple[str, str]] = Counter()
    for family in families:
        names = family.metric.labels_at(family.granularity)
        if family.metric.per_flow and "group" in names:
            at = names.index("group")
            sizes.update((labels[0], labels[at]) for labels, _ in family.series)
    return sizes
