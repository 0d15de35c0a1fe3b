"""Applies the rules to whatever can be read, so that one wrong value hides no other."""

from __future__ import annotations

import contextlib
import copy
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import BaseModel, ValidationError

from mm2slo_core.config import alerting_rules, flow_rules, rules, slo_rules
from mm2slo_core.config.alerting import AlertingConfig
from mm2slo_core.config.audit import AuditConfig
from mm2slo_core.config.cluster import ClusterConfig
from mm2slo_core.config.exporter import ExporterConfig
from mm2slo_core.config.flow import FlowConfig
from mm2slo_core.config.published import published
from mm2slo_core.config.slo import ObjectiveConfig, SloConfig
from mm2slo_core.config.tree import value_at
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mm2slo_core.config.problems import Path
    from mm2slo_core.config.rules import Finding

# A section with a wrong name or address is still checked for the rest.
_ANY_SERVER: Final = {"bootstrap_servers": "unknown:1"}
_ANY_FLOW: Final = {"flow": Flow("\0source", "\0target")}
# Objectives are judged by what the flows publish, and refer to channels.
_JUDGED_WITH_SLO: Final = frozenset({("flows",), ("exporter",), ("alerting",)})
# flows, position, field
_FLOW_FIELD = 3
_Model = TypeVar("_Model", bound=BaseModel)


def check_rules(merged: Mapping[str, object], wrong: Sequence[Path]) -> list[Finding]:
    """Broken rules of the merged file; *wrong* are the paths whose values were refused.

    A refused value is left out and its default stands in, so a rule about it or about its
    neighbours in the same section would speak of a value that nobody wrote: those are dropped.
    """
    return [finding for finding in _findings(merged) if not _doubtful(finding.path, wrong)]


def _doubtful(path: Path, wrong: Sequence[Path]) -> bool:
    # The fields of a flow itself do not depend on each other; those of its sections do.
    if path[:1] == ("slo",) and any(bad[:1] in _JUDGED_WITH_SLO for bad in wrong):
        return True
    of_flow = path[:1] == ("flows",) and len(path) == _FLOW_FIELD
    return any(bad == path[: len(bad)] or (not of_flow and path[:-1] == bad[:-1]) for bad in wrong)


def _findings(merged: Mapping[str, object]) -> Iterator[Finding]:
    clusters = _mapping(merged.get("clusters"))
    for alias, raw in clusters.items():
        cluster = _readable(ClusterConfig, raw, _ANY_SERVER)
        if cluster is not None:
            for finding in rules.check_cluster(cluster):
                yield finding._replace(path=("clusters", alias, *finding.path))
    exporter = _readable(ExporterConfig, merged.get("exporter", {}), {}) or ExporterConfig()
    for finding in rules.check_exporter(exporter):
        yield finding._replace(path=("exporter", *finding.path))
    audit = _readable(AuditConfig, merged.get("audit", {}), {}) or AuditConfig()
    for finding in rules.check_audit(audit):
        yield finding._replace(path=("audit", *finding.path))
    alerting = _readable(AlertingConfig, merged.get("alerting", {}), {}) or AlertingConfig()
    for finding in alerting_rules.check_alerting(alerting):
        yield finding._replace(path=("alerting", *finding.path))
    entries = merged.get("flows")
    entries = entries if isinstance(entries, list) else []
    named = {index: flow for index, raw in enumerate(entries) if (flow := _named(raw)) is not None}
    yield from flow_rules.check_aliases(named, clusters)
    yield from flow_rules.check_names(named)
    flows = {
        index: config
        for index, raw in enumerate(entries)
        if (config := _readable(FlowConfig, raw, _ANY_FLOW)) is not None
    }
    for index, config in flows.items():
        for finding in rules.check_flow(config, exporter):
            yield finding._replace(path=("flows", index, *finding.path))
    flows = {index: config for index, config in flows.items() if index in named}
    yield from flow_rules.check_offset_syncs(flows)
    yield from flow_rules.check_circles(flows)
    told = {
        index: (config.flow, published(config, exporter.carrier(config.canary)))
        for index, config in flows.items()
    }
    yield from slo_rules.check_ids(told)
    slo = _mapping(merged.get("slo"))
    promised = _readable(SloConfig, {**slo, "objectives": []}, {}) or SloConfig()
    for finding in slo_rules.check_slo(
        promised, _objectives(slo.get("objectives")), alerting, dict(told.values())
    ):
        yield finding._replace(path=("slo", *finding.path))


def _objectives(raw: object) -> dict[int, ObjectiveConfig]:
    """Those that can be read as they are, by position: a stand-in promises nothing."""
    found = {}
    for index, each in enumerate(raw if isinstance(raw, list) else []):
        with contextlib.suppress(ValidationError):
            found[index] = ObjectiveConfig.model_validate(each)
    return found


def _mapping(raw: object) -> dict[str, object]:
    return raw if isinstance(raw, dict) else {}


def _named(raw: object) -> Flow | None:
    text = _mapping(raw).get("flow")
    try:
        return Flow.parse(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _readable(model: type[_Model], raw: object, stand_in: Mapping[str, object]) -> _Model | None:
    """*raw* as *model* without the values that were refused; None when it is no mapping.

    *stand_in* are the values of required keys that are missing then.
    """
    if not isinstance(raw, dict):
        return None
    rest = copy.deepcopy(raw)
    try:
        return model.model_validate(raw)
    except ValidationError as invalid:
        for error in invalid.errors(include_url=False, include_input=False):
            _leave_out(rest, error["loc"])
    try:
        return model.model_validate({**stand_in, **rest})
    except ValidationError:
        # What is left lacks something deeper inside, which the report names already.
        return None


def _leave_out(root: object, path: Path) -> None:
    # Only keys go: positions in a list must not move while later errors still name them.
    section = value_at(root, path[:-1])
    if path and isinstance(section, dict):
        section.pop(path[-1], None)
