"""Writes all generated files, or checks that they are up to date.

`python -m mm2slo_cli.docs` writes them; with `--check` it writes nothing and exits with 1 if a file
is outdated. Run it in the root of the repository. The pages about configuration, lint, metrics,
permissions and rules are generated here.
"""

import sys
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mm2slo_alerts import alerts_page, recording_rules
from mm2slo_alerts.alert_files import alert_groups, generated
from mm2slo_alerts.alert_rules import Group
from mm2slo_alerts.alert_thresholds import DEFAULT_THRESHOLDS
from mm2slo_alerts.objective_series import REMEMBERED, SETTLES, STEP
from mm2slo_core.catalogue import GROUPS
from mm2slo_core.catalogue.metric import FLOW_LABELS, Granularity, Metric, Rollup
from mm2slo_core.catalogue.prometheus_series import RECORDED_GROUPS, SLI_LABELS, RecordedSeries
from mm2slo_core.catalogue.promql import duration
from mm2slo_core.catalogue.service_metrics import LOGSHIP_GROUPS, REPORT_GROUPS
from mm2slo_core.config.config_loader import bare_annotation, is_model
from mm2slo_core.config.config_model import Config, default_objective_rules
from mm2slo_core.config.field_types import Secret
from mm2slo_core.config.service_config import Listen
from mm2slo_core.indicators.canary_rules import ALIAS_PREFIX
from mm2slo_core.kafka_permissions import REQUIRED_PERMISSIONS, Component
from mm2slo_core.mm2_config.lint_check_list import CHECKS
from mm2slo_core.quantity_text import (
    DurationBound,
    format_duration,
    parse_share,
    parse_target,
    percent_text,
)
from mm2slo_core.topology import Flow
from mm2slo_dashboards.dashboard_files import generate_files

ALERTS: Final = "alerts/generated"
DASHBOARDS: Final = "dashboards/generated"
RUNBOOKS: Final = "docs/runbooks"


def render_configuration() -> str:
    sections = [_section(title, model) for title, model in _sections((), Config)]
    return "\n".join([_CONFIGURATION_HEAD, *sections])


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


def rendered_files() -> dict[str, str]:
    """The text of each generated file, by its path."""
    return {
        "docs/configuration.md": render_configuration(),
        "docs/lint.md": render_lint(),
        "docs/metrics.md": render_metrics(),
        "docs/permissions.md": render_permissions(),
        "docs/rules.md": render_rules(),
        "docs/alerts.md": alerts_page.render(alert_groups(), DEFAULT_THRESHOLDS),
        f"{RUNBOOKS}/README.md": _runbook_index(Path(RUNBOOKS)),
        **{f"{ALERTS}/{name}": text for name, text in generated().items()},
        **{f"{DASHBOARDS}/{name}": text for name, text in generate_files().items()},
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


_CONFIGURATION_HEAD: Final = """\
# Configuration

<!-- Generated by `python -m mm2slo_cli.docs`; do not edit. -->

The configuration is one YAML file, `mm2slo.yaml`; `mm2slo check mm2slo.yaml` reports all of its
problems. [`reference-config.yaml`](reference-config.yaml) contains every option with its default.

- **Defaults** are those of MirrorMaker 2 for its settings. `defaults:` takes any field of a flow
  except `flow` and applies it to each flow; mappings are merged by key, lists are replaced.
- **Durations** are `500ms`, `5s`, `10m`, `1h`, `35d`, or a number of seconds.
- **Lists of expressions** are Java regular expressions that match whole names, as a YAML list or as
  comma-separated text like in MirrorMaker 2.
- **Secrets**: `${env:NAME}` and `${file:/path}` are replaced in any text, percent-encoded in the
  credentials and the query of a URL. Relative paths start at the folder of the configuration, one
  trailing newline is removed, and `$${` is a literal `${`. Fields of the type secret are always
  shown as `***`.
- **YAML** is parsed strictly: unknown and duplicate keys are errors, and only `true` and `false`
  are booleans.

`mm2slo check` exits with 0 if the file is valid, and with 2 and a report otherwise.

## MirrorMaker 2's own configuration

Clusters and flows need not be repeated. `mm2:` names MirrorMaker 2's own files; with `--mm2`,
`--strimzi` or `--connect`, commands need no `mm2slo.yaml`; `mm2slo init --from FILE` writes one.

```sh
mm2slo exporter --mm2 mm2.properties --path /opt/kafka/tls=./tls
mm2slo exporter --strimzi mirror.yaml --secrets ./secrets   # files <secret>/<key>, as mounted
mm2slo exporter --connect-json connectors.json --worker connect-distributed.properties
```

- **Precedence**, lowest first: MirrorMaker 2's defaults, its files, `defaults:`, `flows:`, and what
  is observed. An entry of `flows:` for a flow that the files do not enable is an error.
- **Clusters**: `clusters.<alias>.security` replaces the security settings of the files, whose
  credentials are then not needed; `bootstrap_servers` replaces theirs; `client` adds to them.
- **References** such as `${env:NAME}` in the files are resolved as Kafka does. `--path FROM=TO`
  (`paths:`) maps files and folders of MirrorMaker 2's machine to this one. A `*` in the key of a
  secret selects all matching files. A reload (SIGHUP, `POST /-/reload`) reads all files again.
"""

_NAMES: Final[dict[Any, str]] = {
    str: "text",
    bool: "true or false",
    int: "whole number",
    float: "number",
    Secret: "secret",
    Flow: "`source->target`",
    Listen: "`host:port`",
}


def _sections(path: tuple[str, ...], model: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    yield ".".join(path) or "The file", model
    for name, info in model.model_fields.items():
        inner, suffix = _section_of(info.annotation)
        if inner is not None:
            yield from _sections((*path, name + suffix), inner)


def _section_of(annotation: object) -> tuple[type[BaseModel] | None, str]:
    found = bare_annotation(annotation)
    if is_model(found):
        return found, ""
    origin, arguments = typing.get_origin(found), typing.get_args(found)
    if origin is tuple and is_model(element := bare_annotation(arguments[0])):
        return element, "[]"
    if origin is Mapping and is_model(element := bare_annotation(arguments[1])):
        return element, ".<alias>"
    return None, ""


def _section(title: str, model: type[BaseModel]) -> str:
    lines = [f"## {title if title == 'The file' else f'`{title}`'}", "", _summary(model), ""]
    lines += ["| Key | Type | Default | Meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{name}` | {_type(info)} | {_default(info)} | {_cell(info.description or '')} |"
        for name, info in model.model_fields.items()
    ]
    if model is Config:
        lines.append("| `defaults` | fields of a flow | none | Applied to each flow. |")
    return "\n".join([*lines, ""])


def _summary(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().partition("\n")[0]


def _type(info: FieldInfo) -> str:
    marks = [*info.metadata, *_optional_marks(info.annotation)]
    bound = next((part for part in marks if _bound(part) is not None), None)
    if bound is not None:
        at_least = _bound(bound)
        return f"duration, at least {format_duration(at_least or 0.0)}"
    if _is_parsed_by(info, parse_share):
        return "percentage, for example `1%`"
    if _is_parsed_by(info, parse_target):
        return "percentage, for example `99.9%`"
    return _cell(_type_name(info.annotation))


def _optional_marks(annotation: object) -> tuple[object, ...]:
    # Of `Annotated[float, ...] | None`, whose marks are not those of the field.
    inner = typing.get_args(annotation)
    return getattr(inner[0], "__metadata__", ()) if type(None) in inner else ()


def _bound(part: object) -> float | None:
    function = getattr(part, "func", None)
    return function.at_least if isinstance(function, DurationBound) else None


def _is_parsed_by(info: FieldInfo, parser: Callable[[object], float]) -> bool:
    return any(getattr(part, "func", None) is parser for part in info.metadata)


def _type_name(annotation: Any) -> str:
    found = bare_annotation(annotation)
    origin, arguments = typing.get_origin(found), typing.get_args(found)
    if is_model(found):
        return "section"
    if isinstance(found, type) and issubclass(found, StrEnum):
        return ", ".join(f"`{member.value}`" for member in found)
    if origin is typing.Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if origin is tuple:
        of_durations = any(
            _bound(part) is not None for part in getattr(arguments[0], "__metadata__", ())
        )
        return f"list of {'duration' if of_durations else _type_name(arguments[0])}s"
    if origin is Mapping:
        return f"mapping to {_type_name(arguments[1])}"
    return _NAMES[found]


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value = info.get_default(call_default_factory=True, validated_data={})
    if value is None:
        return "null"
    if is_model(type(value)):
        return "see its section"
    if any(_bound(part) is not None for part in info.metadata):
        return f"`{format_duration(value)}`"
    if _is_parsed_by(info, parse_share):
        return f"`{percent_text(value)}`"
    # A default value in the source code is not a secret.
    return _cell(_shown(value.reveal() if isinstance(value, Secret) else value))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return "<br>".join(_shown(item) for item in value) or "none"
    if isinstance(value, float):
        return f"`{format_duration(value)}`"
    if isinstance(value, Mapping):
        return "none" if not value else _shown(str(value))
    if is_model(type(value)):
        return "one class `default` for all topics, `1m`"
    return f"`{value}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


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
DescribeConfigs; Create is needed only until the topic exists. `mm2slo check mm2slo.yaml --connect`
compares them with what the configured users may do, and reports what is missing and what is lost
without it.
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
)  # fmt: skip

_WRITES_HEAD: Final = """\
## Writes

Everything that mm2slo writes to the clusters. `mm2slo check mm2slo.yaml` lists what the exporter
writes under a configuration; the audit writes nothing to them.

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
