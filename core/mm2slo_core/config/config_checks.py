"""Runs all checks on the readable parts of the file, so that one invalid value hides no other."""

from __future__ import annotations

import contextlib
import copy
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import BaseModel, ValidationError

from mm2slo_core.config import flow_checks, section_checks, slo_checks
from mm2slo_core.config.alerting_config import AlertingConfig
from mm2slo_core.config.audit_config import AuditConfig
from mm2slo_core.config.cluster_config import ClusterConfig
from mm2slo_core.config.config_problems import value_at
from mm2slo_core.config.exporter_config import ExporterConfig
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.config.logship_config import LogshipConfig, check_logship
from mm2slo_core.config.published_indicators import published
from mm2slo_core.config.section_checks import Finding, within
from mm2slo_core.config.slo_config import ObjectiveConfig, SloConfig
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mm2slo_core.config.config_problems import Path

# Placeholders for invalid required values, so that the rest of the section is still checked.
_ANY_SERVER: Final = {"bootstrap_servers": "unknown:1"}
_ANY_FLOW: Final = {"flow": Flow("\0source", "\0target")}
# Objectives depend on the indicators of the flows and refer to channels.
_SLO_DEPENDENCIES: Final = frozenset({("flows",), ("exporter",), ("alerting",)})
# ("flows", position, field)
_FLOW_FIELD_DEPTH = 3
_Model = TypeVar("_Model", bound=BaseModel)


def check_config(merged: Mapping[str, object], invalid: Sequence[Path]) -> list[Finding]:
    """The findings of all checks; *invalid* are the paths of values that validation rejected.

    A rejected value is replaced by its default. Findings about it or about its section would report
    a value that is not in the file, and are dropped.
    """
    return [finding for finding in _findings(merged) if not _is_unreliable(finding.path, invalid)]


def _is_unreliable(path: Path, invalid: Sequence[Path]) -> bool:
    # The fields of a flow do not depend on each other; those of its sections do.
    if path[:1] == ("slo",) and any(bad[:1] in _SLO_DEPENDENCIES for bad in invalid):
        return True
    of_flow = path[:1] == ("flows",) and len(path) == _FLOW_FIELD_DEPTH
    return any(
        bad == path[: len(bad)] or (not of_flow and path[:-1] == bad[:-1]) for bad in invalid
    )


def _findings(merged: Mapping[str, object]) -> Iterator[Finding]:
    clusters = _mapping(merged.get("clusters"))
    for alias, raw in clusters.items():
        if cluster := _readable(ClusterConfig, raw, _ANY_SERVER):
            yield from within(("clusters", alias), section_checks.check_cluster(cluster))
    exporter = _readable(ExporterConfig, merged.get("exporter", {}), {}) or ExporterConfig()
    yield from within(("exporter",), section_checks.check_exporter(exporter))
    audit = _readable(AuditConfig, merged.get("audit", {}), {}) or AuditConfig()
    yield from within(("audit",), section_checks.check_audit(audit))
    alerting = _readable(AlertingConfig, merged.get("alerting", {}), {}) or AlertingConfig()
    yield from within(("alerting",), section_checks.check_alerting(alerting))
    if logship := _readable(LogshipConfig, merged.get("logship"), {}):
        yield from within(("logship",), check_logship(logship))
    entries = _list(merged.get("flows"))
    named = {
        index: flow for index, raw in enumerate(entries) if (flow := _flow_of(raw)) is not None
    }
    yield from flow_checks.check_aliases(named, clusters)
    yield from flow_checks.check_names(named)
    flows = {
        index: config
        for index, raw in enumerate(entries)
        if (config := _readable(FlowConfig, raw, _ANY_FLOW)) is not None
    }
    for index, config in flows.items():
        yield from within(("flows", index), section_checks.check_flow(config, exporter))
    flows = {index: config for index, config in flows.items() if index in named}
    yield from flow_checks.check_offset_syncs(flows)
    yield from flow_checks.check_replication_cycles(flows)
    indicators = {
        index: (config.flow, published(config, exporter.carrier(config.canary)))
        for index, config in flows.items()
    }
    yield from slo_checks.check_ids(indicators)
    slo = _mapping(merged.get("slo"))
    slo_config = _readable(SloConfig, {**slo, "objectives": []}, {}) or SloConfig()
    objectives = {}
    for index, each in enumerate(_list(slo.get("objectives"))):
        with contextlib.suppress(ValidationError):
            objectives[index] = ObjectiveConfig.model_validate(each)
    found = slo_checks.check_slo(slo_config, objectives, alerting, dict(indicators.values()))
    yield from within(("slo",), found)


def _list(raw: object) -> list[object]:
    return raw if isinstance(raw, list) else []


def _mapping(raw: object) -> dict[str, object]:
    return raw if isinstance(raw, dict) else {}


def _flow_of(raw: object) -> Flow | None:
    text = _mapping(raw).get("flow")
    try:
        return Flow.parse(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _readable(
    model: type[_Model], raw: object, placeholders: Mapping[str, object]
) -> _Model | None:
    """*raw* as *model* without invalid values; None if it is not a mapping.

    *placeholders* replace required keys that are missing or invalid.
    """
    if not isinstance(raw, dict):
        return None
    rest = copy.deepcopy(raw)
    try:
        return model.model_validate(raw)
    except ValidationError as invalid:
        for error in invalid.errors(include_url=False, include_input=False):
            _remove(rest, error["loc"])
    try:
        return model.model_validate({**placeholders, **rest})
    except ValidationError:
        # A required key further down is missing, which is already reported.
        return None


def _remove(root: object, path: Path) -> None:
    # Only keys are removed: later errors refer to positions in lists.
    section = value_at(root, path[:-1])
    if path and isinstance(section, dict):
        section.pop(path[-1], None)
