"""Report of a probe: differences, and YAML for mm2slo.yaml."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import yaml
from rich import box
from rich.table import Table

from mm2slo_core.audit.confidence_bounds import plural
from mm2slo_core.audit.record_identity import Identity, common_identity
from mm2slo_core.audit.transformation_probe import Differences, suggest_identity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from mm2slo_audit.probe.record_probe import Probe
    from mm2slo_core.audit.audit_scope import NotAudited
    from mm2slo_core.topology import Flow


def write_probe_report(
    console: Console, probes: Sequence[Probe], not_compared: Sequence[NotAudited]
) -> None:
    """Print a table of differences, then the suggested configuration."""
    compared = [each for each in probes if each.found.compared]
    if compared:
        console.print(_table(compared))
        for each in compared:
            for line in _remarks(each.found):
                console.print(
                    f"{each.flow.label} {each.source_topic}: {line}", markup=False, highlight=False
                )
    for probe in probes:
        if not probe.found.compared:
            console.print(
                f"{probe.flow.label} {probe.source_topic}: no record could be compared: the target"
                " has no copy of a record that the source still has",
                markup=False,
                highlight=False,
            )
    for topic in not_compared:
        console.print(
            f"{topic.target_topic}: {topic.reason}: {topic.detail}", markup=False, highlight=False
        )
    if compared:
        _suggest(console, compared)


def suggest_identities(probes: Sequence[Probe]) -> Mapping[Flow, Identity]:
    """The identity to configure per flow, over all its topics; only flows with a change."""
    by_flow: defaultdict[Flow, list[Identity]] = defaultdict(list)
    for each in probes:
        by_flow[each.flow].append(suggest_identity(each.found))
    merged = {flow: common_identity(found) for flow, found in by_flow.items()}
    return {flow: found for flow, found in merged.items() if found != Identity()}


def format_yaml(found: Mapping[Flow, Identity]) -> str:
    return yaml.safe_dump(
        {
            "flows": [
                {"flow": flow.label, "audit": {"identity": _changes(identity)}}
                for flow, identity in found.items()
            ]
        },
        sort_keys=False,
    )


def _table(probes: Sequence[Probe]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("Flow", no_wrap=True)
    table.add_column("Topic", overflow="fold")
    for heading in ("Compared", "Key", "Value", "Headers", "Timestamp"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in probes:
        found = each.found
        table.add_row(
            each.flow.label,
            each.source_topic,
            f"{found.compared:,}",
            *(_share(count) for count in (found.key, found.value, found.headers, found.timestamp)),
        )
    return table


def _share(count: int) -> str:
    return "same" if not count else f"{count:,} differ"


def _remarks(found: Differences) -> list[str]:
    lines = []
    identity = suggest_identity(found)
    if found.header_names:
        counted = sorted(found.header_names.items())
        names = ", ".join(f"{name} ({count:,})" for name, count in counted)
        lines.append(f"headers that differ: {names}")
    for name in ("key", "value", "timestamp"):
        count = getattr(found, name)
        if count and getattr(identity, name):
            lines.append(
                f"the {name} differs in {count:,} of {plural(found.compared, 'record')}: too rare"
                " for a transformation, so it stays in the identity"
            )
    if found.unmatched:
        lines.append(f"copies without a matching original: {found.unmatched:,}")
    return lines


def _suggest(console: Console, probes: Sequence[Probe]) -> None:
    found = suggest_identities(probes)
    if not found:
        console.print(
            "copies equal their originals: no change of the identity needed", highlight=False
        )
        return
    console.print("merge into the flows of mm2slo.yaml:", highlight=False)
    console.print(format_yaml(found), markup=False, highlight=False, soft_wrap=True)


def _changes(identity: Identity) -> dict[str, object]:
    found: dict[str, object] = {
        name: False
        for name in ("key", "value", "headers", "timestamp")
        if not getattr(identity, name)
    }
    if identity.ignored_headers:
        found["ignored_headers"] = list(identity.ignored_headers)
    return found
