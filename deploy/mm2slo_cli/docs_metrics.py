"""Generates docs/metrics.md from the catalogue.

`python -m mm2slo_cli.docs_metrics` writes it; run it in the root of the repository.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mm2slo_core.catalogue import FLOW_LABELS, GROUPS, Granularity, Metric, Rollup
from mm2slo_core.catalogue.logship_metrics import LOGSHIP_GROUPS
from mm2slo_core.catalogue.report_metrics import REPORT_GROUPS

PAGE: Final = "docs/metrics.md"
_INTRO: Final = """\
# Metrics

Generated from the catalogue (`core/mm2slo_core/catalogue/`) by
`python -m mm2slo_cli.docs_metrics`; do not edit.

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


def render() -> str:
    """Render the page."""
    sections = [_INTRO]
    for title, metrics in (*GROUPS.items(), *REPORT_GROUPS.items(), *LOGSHIP_GROUPS.items()):
        rows = "\n".join(map(_row, metrics))
        head = "| Name | Type | Labels | Dropped | Meaning |\n| --- | --- | --- | --- | --- |"
        sections.append(f"## {title}\n\n{head}\n{rows}\n")
    return "\n".join(sections)


def _row(metric: Metric) -> str:
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


if __name__ == "__main__":
    Path(PAGE).write_text(render(), encoding="utf-8")
