"""Settings of the connectors that run, as Connect stored them, and a flow's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.config.durations import format_duration
from mm2slo_core.config.flow_config import FlowConfig, Isolation, SettingsSource
from mm2slo_core.connection_checks.required_permissions import SYNC_GROUP_OFFSETS
from mm2slo_core.java_values import split_list
from mm2slo_core.mm2_config.findings import Origin
from mm2slo_core.mm2_config.flow_settings import flow_section, stated_value
from mm2slo_core.mm2_config.mirror_setup import (
    Connector,
    ConnectorKind,
    MirrorFlow,
    Setting,
    Worker,
)
from mm2slo_core.name_filters import DEFAULT_TOPICS, NameFilter
from mm2slo_core.record_transforms import transform_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.records import ConnectorConfig

_POLICY: Final = ("policy.kind", "policy.separator", "policy.internal_separator")
_COMPARED: Final = {
    ConnectorKind.SOURCE: (
        *("topics", "topics_exclude", "config_properties_exclude", "isolation"),
        *("offset_syncs_location", *_POLICY),
    ),
    ConnectorKind.CHECKPOINT: ("groups", "groups_exclude", "checkpoint_interval"),
}


_TOPICS: Final = ("topics", "topics_exclude")
_TOPIC_FILTER: Final = "org.apache.kafka.connect.mirror.DefaultTopicFilter"
_HEARTBEATS: Final = ("heartbeat_interval", "emit_heartbeats")


class SettingDifference(NamedTuple):
    """A field of FlowConfig, its configured value, and the value that MirrorMaker 2 uses."""

    field: str
    configured: str
    used: str


@dataclass(frozen=True, slots=True)
class RunningConnectors:
    """What the configuration topics contain about the connectors of a flow.

    *heartbeats* is the heartbeat connector of the opposite flow, *transactional*: its worker has
    exactly-once support.
    """

    by_name: Mapping[str, ConnectorConfig] = field(default_factory=lambda: MappingProxyType({}))
    heartbeats: ConnectorConfig | None = None
    transactional: bool = False

    @property
    def syncs_group_offsets(self) -> bool:
        """Whether MirrorMaker 2 commits the groups' offsets on the target."""
        return any(
            each.settings.get(SYNC_GROUP_OFFSETS) == "true" for each in self.by_name.values()
        )


def observed_flow(flow: FlowConfig, running: RunningConnectors) -> FlowConfig:
    """*flow* with the settings of the running connectors; what they do not state is kept."""
    if flow.settings is SettingsSource.CONFIGURED:
        return flow
    stating = {
        "isolation": running.by_name.get(flow.connect.source_connector),
        "checkpoint_interval": running.by_name.get(flow.connect.checkpoint_connector),
        **dict.fromkeys(_HEARTBEATS, running.heartbeats),
    }
    observed: dict[str, object] = {"exactly_once": True} if running.transactional else {}
    if source := stating["isolation"]:
        observed["transforms"] = transform_settings(source.settings)
    for name, connector in stating.items():
        value = stated_value(connector.settings, name) if connector else None
        if value is not None:
            observed[name] = Isolation(str(value)) if name == "isolation" else value
    return flow.model_copy(update=observed)


def running_topic_filter(flow: FlowConfig, running: RunningConnectors) -> NameFilter | None:
    """The topic filter of the running source connector; None if it is not known or to be ignored.

    Without `topics.exclude` nothing counts as excluded: the default depends on the version.
    """
    source = running.by_name.get(flow.connect.source_connector)
    if source is None or flow.settings is SettingsSource.CONFIGURED:
        return None
    if source.settings.get("topic.filter.class", _TOPIC_FILTER).strip() != _TOPIC_FILTER:
        return None
    topics, excluded = (stated_value(source.settings, each) for each in _TOPICS)
    included = topics if isinstance(topics, tuple) else DEFAULT_TOPICS
    return NameFilter(included, excluded if isinstance(excluded, tuple) else ())


def overridden_settings(flow: FlowConfig, observed: FlowConfig) -> tuple[SettingDifference, ...]:
    """The fields in which *observed*, by `observed_flow`, differs from *flow*."""
    names = ("isolation", "exactly_once", "transforms", "checkpoint_interval", *_HEARTBEATS)
    values = ((name, _text(getattr(flow, name)), _text(getattr(observed, name))) for name in names)
    return tuple(SettingDifference(*each) for each in values if each[1] != each[2])


def setting_differences(
    flow: FlowConfig, running: Mapping[str, ConnectorConfig]
) -> Iterator[SettingDifference]:
    """The compared settings in which *flow* differs from its running connectors.

    What they do not state has MirrorMaker 2's default.
    """
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
        for name in _COMPARED[kind]:
            configured, used = (_text(attrgetter(name)(each)) for each in (flow, actual))
            if configured != used and name not in unknown:
                yield SettingDifference(name, configured, used)


def _settings(connector: ConnectorConfig, origin: Origin) -> dict[str, Setting]:
    return {key: Setting(key, value, origin) for key, value in connector.settings.items()}


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(name for entry in value for name in split_list(entry))
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={value[key]}" for key in sorted(value)) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    return format_duration(value) if isinstance(value, float) else str(value)
