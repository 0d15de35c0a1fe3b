"""Checks that every series a query reads is published; an unknown one fails generation.

Panels use the catalogue's objects; this checks the finished PromQL text as well.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import ALL, RECORDED
from mm2slo_core.catalogue.external_metrics import ALERTS, ALERTS_FOR_STATE, EXTERNAL
from mm2slo_core.catalogue.report_metrics import REPORT_GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mm2slo_dashboards.dashboard_model import Dashboard

PUBLISHED: Final = frozenset(
    (
        *(
            name
            for metric in (*ALL, *EXTERNAL, *itertools.chain(*REPORT_GROUPS.values()))
            for name in metric.sample_names
        ),
        *(series.name for series in RECORDED),
        ALERTS,
        ALERTS_FOR_STATE,
    )
)
"""Every series name that a query may use."""

_STRINGS: Final = re.compile(r"`[^`]*`|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
_LABELS: Final = re.compile(
    r"\{[^}]*\}|\[[^\]]*\]|\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)"
)
_NAMES: Final = re.compile(r"(?<![\w:.$])[A-Za-z_:][\w:]*(?!\s*\()(?![\w:])")
_KEYWORDS: Final = frozenset(
    {"and", "or", "unless", "bool", "offset", "by", "without", "inf", "nan"}
)


def find_series(expression: str) -> Iterator[str]:
    """The names of the series that a PromQL expression reads."""
    bare = _LABELS.sub(" ", _STRINGS.sub('""', expression))
    for found in _NAMES.finditer(bare):
        if found[0].lower() not in _KEYWORDS:
            yield found[0]


def find_unknown_series(dashboards: Iterable[Dashboard]) -> tuple[str, ...]:
    """A message for each series in the queries of *dashboards* that nothing publishes."""
    return tuple(
        f"{where} reads {name!r}, an unknown series"
        for dashboard in dashboards
        for where, expression in _expressions(dashboard)
        for name in find_series(expression)
        if name not in PUBLISHED
    )


def _expressions(dashboard: Dashboard) -> Iterator[tuple[str, str]]:
    for panel in dashboard.panels:
        for query in panel.all_queries:
            yield f"panel {panel.title!r} of {dashboard.uid}", query.vector.text
    for variable in dashboard.variables:
        yield f"variable {variable.name!r} of {dashboard.uid}", variable.series.text
    for annotation in dashboard.annotations:
        yield f"annotation {annotation.title!r} of {dashboard.uid}", annotation.vector.text
