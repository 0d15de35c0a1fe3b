"""Generates docs/permissions.md from the list of required permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.canary_record import ALIAS_PREFIX
from mm2slo_core.connection_checks.required_permissions import REQUIRED_PERMISSIONS, Component

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTRO: Final = """\
# Permissions

Generated from `core/mm2slo_core/connection_checks/required_permissions.py` by
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
_HEAD: Final = """\
| resource | operations | cluster | for | without it |
|---|---|---|---|---|
"""


def render() -> str:
    """Render the page."""
    exporter = f"## Exporter\n\n{_HEAD}{_rows('exporter')}{_READ_ONLY}"
    writes = f"{_WRITES_HEAD}{''.join(map(_row, _WRITES))}{_HEARTBEAT_MONITORS}"
    audit = f"## Audit\n\n{_HEAD}{_rows('audit')}"
    mirrormaker = f"## MirrorMaker 2\n\n{_HEAD}{_rows('mirrormaker2')}"
    return "\n".join((_INTRO, exporter, writes, audit, mirrormaker))


def _rows(component: Component) -> str:
    rows = []
    for row in REQUIRED_PERMISSIONS:
        if row.component == component:
            settings = " or ".join(f"`{name}`" for name in row.settings)
            purpose = f"{row.purpose} ({settings})" if settings else row.purpose
            cells = row.role.title, ", ".join(row.operations), row.place, purpose, row.without
            rows.append(_row(cells))
    return "".join(rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
