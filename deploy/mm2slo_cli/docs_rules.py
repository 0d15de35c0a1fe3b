"""docs/rules.md: what is recorded, how, and how Prometheus 3 reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts import recording
from mm2slo_alerts.files import alert_groups
from mm2slo_alerts.model import AlertRule, Links
from mm2slo_alerts.prometheus_3 import NEWEST, SHAPES, SUBQUERY, reviewed
from mm2slo_alerts.recording.timing import REMEMBERED, SETTLES, STEP
from mm2slo_core.catalogue import RECORDED_GROUPS, SLI_LABELS
from mm2slo_core.config.published import default_objective_rules
from mm2slo_core.promql import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_alerts.model import Group
    from mm2slo_core.catalogue import RecordedSeries

_INTRO: Final = f"""\
# Rules

Generated from the catalogue and the rules (`python -m mm2slo_cli.docs`); do not edit.

`mm2slo alerts generate` writes the rule files to `alerts/generated`; `mm2slo alerts check` says
whether they are current and whether Prometheus accepts them. The committed ones hold the default
objectives for any flow; with `--config mm2slo.yaml` they hold yours. They need Prometheus 2.42 or
later, and a retention above the longest window: 35 days for 28.

- **Counts are recorded, ratios are divided last.** A window is the sum of its events; no ratio is
  ever averaged, so a quiet hour weighs as little as its events.
- **Windows up to an hour** are read from the counters every 30 seconds. **Longer ones** are sums
  of steps: increments of {duration(STEP)}, recorded every {duration(STEP)}, that do not overlap.
- **No events, no ratio**: neither 0 nor NaN. Where no good event was ever counted, all are bad.
- **Replicas of the exporter are averaged**, bad and all events alike: the ratio is that of all
  replicas' events together, and no event counts twice. While a replica is replaced, counts are
  those of the time that both cover.
- **Planned maintenance** (`mm2slo exclude`) is left out by steps: an increment of five minutes is
  excluded when maintenance was active in it or in the {duration(SETTLES)} before it, in which
  events of the maintenance still settle. A window of 30 minutes or an hour that it touches is the
  sum of the increments that it does not touch. Excluded events are counted as such.
- **An objective outlives its counters by {REMEMBERED}**, so that a budget does not
  vanish with the exporter, and a flow that went away is missed for as long, as low coverage.
- **Coverage** is the known share of the events times the share of due steps that were recorded. A
  step is due when the indicator had an objective a step before already: a young flow is judged by
  the time since it exists, and the hour before it is not missing.
- **Pairs that page** ask for objectives whose gravest severity is a page. A pair whose factor
  times the budget is 1 or more can never fire, since error ratios end at 1; `generate` and
  `check` name such pairs.

What must fit together is in one group, whose rules see each other's newest values; between groups
a value is up to one interval old.
"""
_RECORDED: Final = """\
## Recorded series

Every series carries `flow`, `source`, `target`, `sli` and `tier` unless others are named.
"""
_REVIEW: Final = """\
## Prometheus 3, rule by rule

Only Prometheus 2.42 runs in the tests. Each rule was reviewed for what version 3 reads
differently: ranges, subqueries and the look back for the newest sample leave their older edge out,
bounds of buckets are written as floats, and `.` in patterns matches a newline (no label here holds
one). No rule selects by `le`. A rule of a shape that is not listed here fails the tests.
"""


def render() -> str:
    """The whole page."""
    recorded = recording.groups(default_objective_rules())
    alerts = alert_groups(Links())
    return "\n".join(
        (
            _INTRO,
            _table_of_groups((*recorded, *alerts)),
            _RECORDED,
            *(_series(title, series) for title, series in RECORDED_GROUPS.items()),
            _REVIEW,
            _shapes(),
            _rules((*recorded, *alerts)),
        )
    )


def _table_of_groups(groups: Sequence[Group]) -> str:
    rows = "\n".join(
        f"| `{group.name}` | {duration(group.interval)} | {len(group.rules)} |" for group in groups
    )
    return f"## Groups\n\n| Group | Every | Rules |\n| --- | --- | --- |\n{rows}\n"


def _series(title: str, series: Sequence[RecordedSeries]) -> str:
    rows = "\n".join(f"| `{each.name}` | {each.help}{_labels(each)} |" for each in series)
    return f"### {title}\n\n| Series | Meaning |\n| --- | --- |\n{rows}\n"


def _labels(series: RecordedSeries) -> str:
    if series.labels == SLI_LABELS:
        return ""
    return f" Labels: {', '.join(f'`{label}`' for label in series.labels)}."


def _shapes() -> str:
    rows = "\n".join(
        f"| {shape.name} | {', '.join(f'`{each}`' for each in sorted(shape.functions)) or '-'} "
        f"| {shape.finding} |"
        for shape in (*SHAPES, SUBQUERY, NEWEST)
    )
    return f"| Shape | Functions | Finding |\n| --- | --- | --- |\n{rows}\n"


def _rules(groups: Sequence[Group]) -> str:
    rows: dict[str, None] = {}
    for group, rule, shapes in reviewed(groups):
        name = rule.alert if isinstance(rule, AlertRule) else rule.record
        made_of = ", ".join(shape.name for shape in shapes)
        rows[f"| `{name}` | `{group}` | {made_of} | same |"] = None
    return "\n".join(
        ("| Rule | Group | Shapes | Verdict |", "| --- | --- | --- | --- |", *rows, "")
    )
