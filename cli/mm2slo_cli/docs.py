"""Writes all generated files, or checks that they are up to date.

`python -m mm2slo_cli.docs` writes them; with `--check` it writes nothing and exits with 1 if a file
is outdated. Run it in the root of the repository. The pages about lint, metrics, permissions and
rules are generated here.
"""

import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mm2slo_alerts import alerts_page, recording_rules
from mm2slo_alerts.alert_files import alert_groups, generated
from mm2slo_alerts.alert_rules import Group
from mm2slo_alerts.alert_thresholds import DEFAULT_THRESHOLDS
from mm2slo_alerts.objective_series import REMEMBERED, STEP
from mm2slo_cli.chart_files import render_chart_files
from mm2slo_cli.config_pages import render_configuration, render_reference
from mm2slo_core.catalogue import GROUPS
from mm2slo_core.catalogue.metric import FLOW_LABELS, Granularity, Metric, Rollup
from mm2slo_core.catalogue.prometheus_series import (
    RECORDED_GROUPS,
    SETTLES,
    SLI_LABELS,
    RecordedSeries,
)
from mm2slo_core.catalogue.promql import duration
from mm2slo_core.catalogue.service_metrics import LOGSHIP_GROUPS, REPORT_GROUPS
from mm2slo_core.config.config_model import default_objective_rules
from mm2slo_core.cutover import cutover_checks
from mm2slo_core.cutover.cutover_checks import CutoverPhase
from mm2slo_core.indicators.canary_rules import ALIAS_PREFIX
from mm2slo_core.kafka_permissions import REQUIRED_PERMISSIONS, Component
from mm2slo_core.mm2_config.lint_check_list import CHECKS
from mm2slo_dashboards.dashboard_files import DASHBOARD_FOLDER, generate_files, render_export

ALERTS: Final = "alerts/generated"
DASHBOARDS: Final = "dashboards/generated"
RUNBOOKS: Final = "docs/runbooks"


def render_metrics() -> str:
    sections = [_METRICS_INTRO]
    for title, metrics in (*GROUPS.items(), *REPORT_GROUPS.items(), *LOGSHIP_GROUPS.items()):
        rows = "\n".join(map(_metric_row, metrics))
        head = "| Name | Type | Labels | Dropped | Meaning |\n| --- | --- | --- | --- | --- |"
        sections.append(f"## {title}\n\n{head}\n{rows}\n")
    return "\n".join(sections)


def render_rules() -> str:
    recorded = recording_rules.recording_groups(default_objective_rules())
    alerts = alert_groups()
    return "\n".join(
        (
            _RULES_INTRO,
            _table_of_groups((*recorded, *alerts)),
            _RECORDED,
            *(_series(title, series) for title, series in RECORDED_GROUPS.items()),
        )
    )


def render_permissions() -> str:
    exporter = f"## Exporter\n\n{_PERMISSIONS_HEAD}{_rows('exporter')}{_READ_ONLY}"
    writes = f"{_WRITES_HEAD}{''.join(map(_permission_row, _WRITES))}{_HEARTBEAT_MONITORS}"
    audit = f"## Audit\n\n{_PERMISSIONS_HEAD}{_rows('audit')}"
    mirrormaker = f"## MirrorMaker 2\n\n{_PERMISSIONS_HEAD}{_rows('mirrormaker2')}"
    return "\n".join((_PERMISSIONS_INTRO, exporter, writes, audit, mirrormaker))


def render_lint() -> str:
    rows = (
        f"| `{each.name}` | {each.severity} | {'clusters' if each.connect else 'files'}"
        f" | {each.why} | {each.action} |\n".replace("}|", "}\\|")
        for each in CHECKS.values()
    )
    return _LINT_INTRO + "".join(rows)


def render_cutover_checks() -> str:
    rows = (
        f"| `{each.name}` | {' and '.join(p.value for p in CutoverPhase if p in each.phases)}"
        f" | {(inspect.getdoc(each.judge) or '').partition(_PARAGRAPH)[0].rstrip('.')}"
        f" | {', '.join(f'`{name}`' for name in each.follows)} |\n"
        for each in cutover_checks.CHECKS
    )
    return _CUTOVER_INTRO + "".join(rows)


def rendered_files() -> dict[str, str]:
    """The text of each generated file, by its path."""
    boards = generate_files()
    exports = {
        f"grafana.com/{Path(name).name}": render_export(text)
        for name, text in boards.items()
        if name.startswith(DASHBOARD_FOLDER)
    }
    return {
        "docs/configuration.md": render_configuration(),
        "docs/cutover-checks.md": render_cutover_checks(),
        "docs/lint.md": render_lint(),
        "docs/metrics.md": render_metrics(),
        "docs/permissions.md": render_permissions(),
        "docs/reference-config.yaml": render_reference(),
        "docs/rules.md": render_rules(),
        "docs/alerts.md": alerts_page.render(
            alert_groups(), DEFAULT_THRESHOLDS, default_objective_rules()
        ),
        f"{RUNBOOKS}/README.md": _runbook_index(Path(RUNBOOKS)),
        **{f"{ALERTS}/{name}": text for name, text in generated().items()},
        **{f"{DASHBOARDS}/{name}": text for name, text in (boards | exports).items()},
        **render_chart_files(boards),
    }


def main(arguments: Sequence[str]) -> int:
    """Write or check all files; returns the exit code."""
    is_check = "--check" in arguments
    stale = [each for each in rendered_files().items() if not _is_current(Path(each[0]), each[1])]
    for name, text in stale:
        if is_check:
            sys.stderr.write(f"{name} is outdated; run: python -m mm2slo_cli.docs\n")
        else:
            Path(name).write_text(text, encoding="utf-8")
    return int(is_check and bool(stale))


def _runbook_index(folder: Path) -> str:
    pages = {page.stem: page.read_text(encoding="utf-8") for page in folder.glob("*.md")}
    return alerts_page.render_runbook_index(pages.pop("README"), alert_groups(), pages)


def _is_current(page: Path, text: str) -> bool:
    return page.exists() and page.read_text(encoding="utf-8") == text


_METRICS_INTRO: Final = """\
# Metrics

Generated from the catalogue (`core/mm2slo_core/catalogue/`) by
`python -m mm2slo_cli.docs`; do not edit.

- Metrics of a flow have the labels `flow` (as in `us->eu`), `source` and `target` (the cluster
  aliases) in addition to those listed.
- `topic` is the topic name on the source; `mm2_topic_info` maps it to the target topic.
- *Dropped* is the effect of a coarser `exporter.granularity`: values are combined over the dropped
  label, or the metric is not published at that level. The default is `topic`.
- A series with an unknown value is absent; no metric uses NaN or a placeholder for unknown values.
- Durations are in seconds, timestamps in seconds since the epoch.
- `mm2slo report serve` publishes *Audits* and *Report service*, `mm2slo logship` *Log shipping*,
  `mm2slo exporter` all others; each also publishes *Process*.
"""


def _metric_row(metric: Metric) -> str:
    own = metric.labels[len(FLOW_LABELS) :] if metric.per_flow else metric.labels
    labels = ", ".join(f"`{label}`" for label in own) or "none"
    if not metric.per_flow:
        labels += " (no flow labels)"
    meaning = metric.help
    if metric.buckets:
        meaning += f" Buckets: {', '.join(f'{bound:g}' for bound in metric.buckets)}."
    cells = (f"`{metric.name}`", metric.type.value, labels, _dropped(metric), meaning)
    return f"| {' | '.join(cells)} |"


def _dropped(metric: Metric) -> str:
    parts = []
    if metric.rollup is not None:
        combined = {Rollup.SUM: "sum", Rollup.MAX: "largest", Rollup.MIN: "smallest"}
        names = [label for label in ("partition", "topic") if _drops(metric, label)]
        parts.append(f"{' and '.join(names)}: {combined[metric.rollup]}")
    if metric.coarsest is not Granularity.FLOW:
        parts.append(f"from {metric.coarsest.label} level on")
    return "; ".join(parts)


def _drops(metric: Metric, label: str) -> bool:
    return label in metric.labels and label not in metric.labels_at(metric.coarsest)


_RULES_INTRO: Final = f"""\
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


_PERMISSIONS_INTRO: Final = """\
# Permissions

Generated from `core/mm2slo_core/kafka_permissions.py` by
`python -m mm2slo_cli.docs`; do not edit.

The minimum Kafka ACLs. *Source* and *target* are those of a flow; with active-active replication,
each cluster is both. Read, Write and Alter include Describe, AlterConfigs includes
DescribeConfigs; Create is needed only until the topic exists.
`mm2slo check --config mm2slo.yaml --connect` compares them with what the configured users may do,
and reports what is missing and what is lost without it.
"""

_READ_ONLY: Final = """
**Read-only mode** (`exporter.read_only: true`) writes nothing to any cluster. Without canaries
there are no SLIs for latency, completeness, uniqueness, order and affinity, and availability is
measured by MirrorMaker 2's heartbeats in time slices. Without state records, certain losses are
not counted but published as pending (`mm2_retention_pending_lost_records`), and verdicts on groups
do not survive a restart. Without the watermark timeline, lag in seconds after a restart of the
exporter comes from the timestamp of the oldest unreplicated record.
`mm2slo check` lists the effects for each flow.
"""

_WRITES: Final = (
    ("`heartbeats`", "source", "canaries, one per `canary.interval` and flow",
     "`canary.carrier` is `heartbeats`"),
    ("the canary topic (`mm2slo.canary`)", "source", "canaries, one per `canary.interval`",
     "`canary.carrier` is `topic`"),
    ("`mm2slo.state.internal`", "target", "losses, verdicts on groups and the recovery point, on "
     "change", "not in read-only mode"),
    ("group `mm2slo.leader.*`", "target", "membership of each replica, no offsets",
     "not in read-only mode"),
    ("`mm2slo.watermarks.internal`", "target", "the watermark timeline", "`timeline.enabled`"),
    ("`mm2slo.arrivals.internal`", "target", "arrival times of the last 24 hours",
     "`timeline.arrivals`"),
    ("group `mm2slo.canary.*`", "source", "membership of each replica, no offsets",
     "canaries are sent and `exporter.instance` is not set"),
    ("`mm2slo.clock.internal`", "both", "two records to measure the clock offset",
     "only `mm2slo check --connect --allow-writes`"),
    ("`mm2slo.drill.*`", "source", "records and a group of one drill, deleted at its end",
     "only `mm2slo drill`, after its flow was typed"),
    ("`mm2slo.perf.*`", "source", "records of one measurement, deleted at its end with the copy",
     "only `mm2slo perf`, after its flow was typed"),
    ("group `__mm2slo-drill.*`", "target", "members in the place of groups, no offsets",
     "only `mm2slo drill`"),
)  # fmt: skip

_WRITES_HEAD: Final = """\
## Writes

Everything that mm2slo writes to the clusters. `mm2slo check --config mm2slo.yaml` lists what
the exporter writes under a configuration; the audit writes nothing to them.

| topic or group | cluster | what | if |
|---|---|---|---|
"""

_HEARTBEAT_MONITORS: Final = f"""
**Canaries mask other monitors of heartbeats.** A canary in `heartbeats` is a valid heartbeat, and
MirrorMaker 2 replicates it to `*.heartbeats`. A monitor of the newest heartbeat timestamp in these
topics therefore sees recent heartbeats although MirrorMaker 2 emits none. Make it ignore keys whose
source cluster alias starts with `{ALIAS_PREFIX}`, or set `canary: {{carrier: topic}}`. mm2slo's own
heartbeat metrics ignore canaries.
"""

_PERMISSIONS_HEAD: Final = """\
| resource | operations | cluster | for | without it |
|---|---|---|---|---|
"""


def _rows(component: Component) -> str:
    rows = []
    for row in REQUIRED_PERMISSIONS:
        if row.component == component:
            settings = " or ".join(f"`{name}`" for name in row.settings)
            purpose = f"{row.purpose} ({settings})" if settings else row.purpose
            cells = row.role.title, ", ".join(row.operations), row.place, purpose, row.without
            rows.append(_permission_row(cells))
    return "".join(rows)


def _permission_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


_PARAGRAPH: Final = "\n\n"

_CUTOVER_INTRO: Final = """\
# Checks of a cutover

Generated from `core/mm2slo_core/cutover/cutover_checks.py` by `python -m mm2slo_cli.docs`; do not
edit.

What `mm2slo cutover check` and `/flows/{slug}/cutover` judge ([failover](failover.md)). A check
that fails because of another one is marked as its consequence.

| check | phase | passes if | may follow from |
|---|---|---|---|
"""

_LINT_INTRO: Final = """\
# Checks of `mm2slo lint`

Generated from `core/mm2slo_core/mm2_config/lint_check_list.py` by `python -m mm2slo_cli.docs`; do
not edit. The command also prints what is found while files are read. Checks that read clusters
need `--connect`. The exit code is 2 with errors, 1 with warnings, otherwise 0.

| Check | Severity | Reads | Why it matters | What to do |
|---|---|---|---|---|
"""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
