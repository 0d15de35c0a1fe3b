"""What running connectors say about a flow: their settings, as Connect stored them.

And how MirrorMaker 2 reads the settings that decide what a flow observes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from mm2slo_core.config.exporter_settings import FlowSettings, Isolation, SettingsSource
from mm2slo_core.java_values import compile_java, read_integer, split_list, trim
from mm2slo_core.kafka_permissions import SYNC_GROUP_OFFSETS
from mm2slo_core.mm2_config.mirror_setup import MIRROR_PACKAGE, ConnectorKind
from mm2slo_core.quantity_text import format_duration
from mm2slo_core.records.connect_records import ConnectorConfig
from mm2slo_core.topic_filters import DEFAULT_TOPICS, NameFilter, transform_settings

_Value = TypeVar("_Value")
_Flow = TypeVar("_Flow", bound=FlowSettings)

_TOPICS: Final = ("topics", "topics_exclude")
_TOPIC_FILTER: Final = f"{MIRROR_PACKAGE}DefaultTopicFilter"
_HEARTBEAT_FIELDS: Final = ("heartbeat_interval", "emit_heartbeats")


class SettingDifference(NamedTuple):
    """A field of FlowSettings, its configured value, and the value that MirrorMaker 2 uses."""

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


def observed_flow(flow: _Flow, running: RunningConnectors) -> _Flow:
    """*flow* with the settings of the running connectors; what they do not state is kept."""
    if flow.settings is SettingsSource.CONFIGURED:
        return flow
    source = running.by_name.get(flow.connect.source_connector)
    stating = {
        **dict.fromkeys(("isolation", "offset_lag_max"), source),
        "checkpoint_interval": running.by_name.get(flow.connect.checkpoint_connector),
        **dict.fromkeys(_HEARTBEAT_FIELDS, running.heartbeats),
    }
    observed: dict[str, object] = {"exactly_once": True} if running.transactional else {}
    if source:
        observed["transforms"] = transform_settings(source.settings)
    for name, connector in stating.items():
        value = stated_value(connector.settings, name) if connector else None
        if value is not None:
            observed[name] = Isolation(str(value)) if name == "isolation" else value
    return flow.changed(observed)


def running_topic_filter(flow: FlowSettings, running: RunningConnectors) -> NameFilter | None:
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


def overridden_settings(
    flow: FlowSettings, observed: FlowSettings
) -> tuple[SettingDifference, ...]:
    """The fields in which *observed*, by `observed_flow`, differs from *flow*."""
    names = (
        *("isolation", "exactly_once", "transforms", "checkpoint_interval", "offset_lag_max"),
        *_HEARTBEAT_FIELDS,
    )
    values = (
        (name, value_text(getattr(flow, name)), value_text(getattr(observed, name)))
        for name in names
    )
    return tuple(SettingDifference(*each) for each in values if each[1] != each[2])


RENAMED: Final = {
    f"{name}.blacklist": f"{name}.exclude" for name in ("topics", "groups", "config.properties")
}
"""Old keys (KIP-629) and their new names."""
_TOO_LONG: Final = 10**12


def _patterns(text: str) -> tuple[str, ...]:
    # MirrorUtils.compilePatternList joins them, so that a group may span several: `(a,b)`.
    patterns = split_list(text)
    compile_java("|".join(patterns))
    try:
        for each in patterns:
            compile_java(each)
    except ValueError:
        return ("|".join(patterns),)
    return patterns


def _interval(unit: float) -> Callable[[str], float | None]:
    def seconds(text: str) -> float | None:
        number = _whole(text)
        # An interval below 0 switches off what it is for.
        return None if number < 0 else max(number, 1) * unit

    return seconds


def _whole(text: str) -> int:
    number = read_integer(text)
    if number is None or number >= _TOO_LONG:
        raise ValueError(f"{text[:50]!r} is not a whole number below 10^12")
    return number


def _records(text: str) -> int:
    # Below 0, OffsetSyncWriter sends a sync for each record, as with 0.
    return max(_whole(text), 0)


def _choice(choices: Mapping[str, object], *, any_case: bool = True) -> Callable[[str], object]:
    def choose(text: str) -> object:
        name = trim(text).lower() if any_case else trim(text)
        if name not in choices:
            raise ValueError(f"{text[:50]!r} is not one of {', '.join(choices)}")
        return choices[name]

    return choose


_ISOLATION: Final = _choice(
    {level: level for level in ("read_uncommitted", "read_committed")}, any_case=False
)
_LOCATION: Final = _choice({"source": "source", "target": "target"}, any_case=False)
_EXACTLY_ONCE: Final = _choice({"enabled": True, "preparing": False, "disabled": False})
_SWITCH: Final = _choice({"true": True, "false": False})
_SOURCE, _CHECKPOINT, _HEARTBEAT = ConnectorKind
HEARTBEAT_INTERVAL: Final = "emit.heartbeats.interval.seconds"

# Fields of FlowSettings by the keys of a connector, or of the worker (None).
FIELDS: Final[Mapping[str, tuple[ConnectorKind | None, str, Callable[[str], object]]]] = {
    "topics": (_SOURCE, "topics", _patterns),
    "topics_exclude": (_SOURCE, "topics.exclude", _patterns),
    "groups": (_CHECKPOINT, "groups", _patterns),
    "groups_exclude": (_CHECKPOINT, "groups.exclude", _patterns),
    "config_properties_exclude": (_SOURCE, "config.properties.exclude", _patterns),
    "offset_syncs_location": (_SOURCE, "offset-syncs.topic.location", _LOCATION),
    "isolation": (_SOURCE, "source.consumer.isolation.level", _ISOLATION),
    "exactly_once": (None, "exactly.once.source.support", _EXACTLY_ONCE),
    "offset_flush_interval": (None, "offset.flush.interval.ms", _interval(0.001)),
    "checkpoint_interval": (_CHECKPOINT, "emit.checkpoints.interval.seconds", _interval(1.0)),
    "offset_lag_max": (_SOURCE, "offset.lag.max", _records),
    "emit_heartbeats": (_HEARTBEAT, "emit.heartbeats.enabled", _SWITCH),
    "heartbeat_interval": (_HEARTBEAT, HEARTBEAT_INTERVAL, _interval(1.0)),
}


def stated_value(settings: Mapping[str, str], name: str) -> object | None:
    """The value of a field of FlowSettings by a connector's *settings*.

    None if its key is absent, or has a value that Kafka Connect rejects.
    """
    _kind, key, convert = FIELDS[name]
    text = find_setting(settings, key)
    if name == "emit_heartbeats" and (read_integer(settings.get(HEARTBEAT_INTERVAL, "")) or 0) < 0:
        return False
    try:
        return None if text is None else convert(text)
    except ValueError:
        return None


def find_setting(settings: Mapping[str, _Value], key: str) -> _Value | None:
    # `source.consumer.` overrides `consumer.`, and a new name its old one.
    names = (key, key.removeprefix("source."), *(old for old in RENAMED if RENAMED[old] == key))
    return next((settings[name] for name in names if name in settings), None)


def value_text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(name for entry in value for name in split_list(entry))
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={value[key]}" for key in sorted(value)) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    return format_duration(value) if isinstance(value, float) else str(value)
