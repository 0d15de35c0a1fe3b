"""Generates docs/permissions.md from the list of required permissions."""

from __future__ import annotations

from typing import Final

from mm2slo_core.connection_checks.required_permissions import REQUIRED_PERMISSIONS, Component

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
measured by MirrorMaker 2's heartbeats in time slices. Without the watermark timeline, lag in
seconds after a restart of the exporter comes from the timestamp of the oldest unreplicated record.
`mm2slo check` lists the effects for each flow.
"""
_HEAD: Final = """\
| resource | operations | cluster | for | without it |
|---|---|---|---|---|
"""


def render() -> str:
    """Render the page."""
    exporter = f"## Exporter\n\n{_HEAD}{_rows('exporter')}{_READ_ONLY}"
    audit = f"## Audit\n\n{_HEAD}{_rows('audit')}"
    mirrormaker = f"## MirrorMaker 2\n\n{_HEAD}{_rows('mirrormaker2')}"
    return "\n".join((_INTRO, exporter, audit, mirrormaker))


def _rows(component: Component) -> str:
    rows = []
    for row in REQUIRED_PERMISSIONS:
        if row.component == component:
            purpose = f"{row.purpose} (`{row.setting}`)" if row.setting else row.purpose
            cells = row.role.title, ", ".join(row.operations), row.place, purpose, row.without
            rows.append(f"| {' | '.join(cells)} |\n")
    return "".join(rows)
