"""Compares a flow's configuration with the connectors that run, as Connect stored them."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.durations import format_duration
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.mm2_config.findings import Origin
from mm2slo_core.mm2_config.flow_settings import flow_section
from mm2slo_core.mm2_config.mirror_setup import (
    Connector,
    ConnectorKind,
    MirrorFlow,
    Setting,
    Worker,
)
from mm2slo_core.name_filters import split_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mm2slo_core.records import ConnectorConfig

_POLICY: Final = ("policy.kind", "policy.separator", "policy.internal_separator")
_COMPARED: Final = {
    ConnectorKind.SOURCE: (
        *("topics", "topics_exclude", "config_properties_exclude", "isolation"),
        *("offset_syncs_location", *_POLICY),
    ),
    ConnectorKind.CHECKPOINT: ("groups", "groups_exclude", "checkpoint_interval"),
}


def setting_differences(
    flow: FlowConfig, running: Mapping[str, ConnectorConfig]
) -> Iterator[tuple[str, str, str]]:
    """Field of the flow, its configured value, and the value of the running connector."""
    names = {
        ConnectorKind.SOURCE: flow.connect.source_connector,
        ConnectorKind.CHECKPOINT: flow.connect.checkpoint_connector,
    }
    origin = Origin("the configuration topic")
    connectors = {
        kind: Connector(kind, name, _settings(running[name], origin), origin)
        for kind, name in names.items()
        if name in running
    }
    observed = MirrorFlow(flow.flow, connectors, Worker.of({}), origin)
    section, findings = flow_section(observed, None)
    actual = FlowConfig.model_validate(section)
    unknown = set(_POLICY) if any(each.check == "custom-policy" for each in findings) else set()
    if "topics_exclude" not in section:
        unknown.add("topics_exclude")  # the default depends on MirrorMaker 2's version
    for kind in connectors:
        for field in _COMPARED[kind]:
            configured, used = (_text(attrgetter(field)(each)) for each in (flow, actual))
            if configured != used and field not in unknown:
                yield field, configured, used


def _settings(connector: ConnectorConfig, origin: Origin) -> dict[str, Setting]:
    return {key: Setting(key, value, origin) for key, value in connector.settings.items()}


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(name for entry in value for name in split_list(entry))
    return format_duration(value) if isinstance(value, float) else str(value)
