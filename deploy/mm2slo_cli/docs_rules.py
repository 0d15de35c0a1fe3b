"""Generates docs/rules.md: recorded series and rule groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts import recording
from mm2slo_alerts.output_files import alert_groups
from mm2slo_alerts.recording.rule_intervals import REMEMBERED, SETTLES, STEP
from mm2slo_alerts.rule_model import Links
from mm2slo_core.catalogue import RECORDED_GROUPS, SLI_LABELS
from mm2slo_core.config.published_indicators import default_objective_rules
from mm2slo_core.promql import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_alerts.rule_model import Group
    from mm2slo_core.catalogue import RecordedSeries

_INTRO: Final = f"""\
# Rules

Generated from the catalogue and the rules (`python -m mm2slo_cli.docs`); do not edit.

`mm2slo alerts generate` writes the rule files to `alerts/generated`; `mm2slo alerts check` checks
that they are up to date and that Prometheus accepts them. The committed files contain the default
objectives for any flow; with `--config mm2slo.yaml` they contain yours. They need Prometheus 2.42
or later, and a retention above the longest window: 35 days for 28. They were
[reviewed for Prometheus 3](prometheus-3.md).

- **Counts are recorded, ratios are computed last.** A window is the sum of its events. Ratios are
  never averaged, so an hour with few events has little weight.
- **Windows up to an hour** are read from the counters every 30 seconds. **Longer ones** are sums
  of steps: non-overlapping increments of {duration(STEP)}, recorded every {duration(STEP)}.
- **A budget belongs to the whole window.** Spent is the share of bad events times the measured
  share of the window's steps, divided by the allowed share: time before a flow existed, and time
  that was not scraped, cost nothing, and five minutes of outage cost the same in every flow. A step
  without events is measured; planned maintenance shortens the window. Burn rates of the long
  windows (1h, 6h, 1d, 3d) are scaled alike, those of the short ones (5m, 2h) are not.
- **No events, no ratio**: the series is absent, not 0 or NaN. Without a series of good events, all
  events are bad.
- **Replicas of the exporter are averaged**, both bad and all events: the ratio is that of the
  events of all replicas, and no event is counted twice. While a replica is replaced, counts are
  those of the time that both cover.
- **Planned maintenance** (`mm2slo exclude`) is excluded by steps: an increment of five minutes is
  excluded if maintenance was active in it or in the {duration(SETTLES)} before, while its events
  still settle. A window of an hour that overlaps maintenance is the sum of the increments that do
  not. Excluded events are counted separately.
- **Objectives are recorded for {REMEMBERED} after their counters end**, so that the budget
  stays visible without the exporter, and a flow that disappears has low coverage for that time.
- **Coverage** is the known share of events times the share of expected steps that were recorded. A
  step is expected if the indicator had an objective a step before, so that the time before a flow
  was created does not lower its coverage.
- **Window pairs that page** apply to objectives with `max_severity: page`. A pair whose factor
  times the error budget is 1 or more cannot fire, because the error ratio is at most 1; `generate`
  and `check` report such pairs.

Rules that depend on each other are in one group, which evaluates them in order. Each rule also
accepts recorded series that are one evaluation old, even of its own group: vmalert with remote
write delivers them that late, and nothing alerts or disappears for it. Bad events are therefore
computed from both counters at one instant, never from a recorded count of all events.
"""
_RECORDED: Final = """\
## Recorded series

All series have the labels `flow`, `source`, `target`, `sli` and `tier` unless others are listed.
"""


def render() -> str:
    """Render the page."""
    recorded = recording.groups(default_objective_rules())
    alerts = alert_groups(Links())
    return "\n".join(
        (
            _INTRO,
            _table_of_groups((*recorded, *alerts)),
            _RECORDED,
            *(_series(title, series) for title, series in RECORDED_GROUPS.items()),
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
