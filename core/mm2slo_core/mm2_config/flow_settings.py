"""The entry of `flows:` in mm2slo.yaml that says the same as a flow of MirrorMaker 2.

And its differences from all settings of the connectors that run (`running_settings` has those that
the exporter observes).
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from pydantic import ValidationError

from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.java_values import UnreadablePatternError, trim
from mm2slo_core.mm2_config.connector_settings import is_read, kafka_release
from mm2slo_core.mm2_config.mirror_setup import (
    MIRROR_PACKAGE,
    WORKER_NAMES,
    Connector,
    ConnectorKind,
    Finding,
    FindingSeverity,
    MirrorFlow,
    Origin,
    Setting,
    Worker,
)
from mm2slo_core.mm2_config.provider_references import REFERENCE
from mm2slo_core.mm2_config.running_settings import (
    FIELDS,
    RENAMED,
    SettingDifference,
    find_setting,
    value_text,
)
from mm2slo_core.offset_translation import keeps_offset_syncs
from mm2slo_core.quantity_text import format_duration
from mm2slo_core.records.connect_records import ConnectorConfig
from mm2slo_core.replication_policy import KafkaVersion, connect_topic
from mm2slo_core.topic_filters import (
    default_topics_exclude,
    transform_settings,
)

_POLICIES: Final = {
    f"{MIRROR_PACKAGE}DefaultReplicationPolicy": "default",
    f"{MIRROR_PACKAGE}IdentityReplicationPolicy": "identity",
    # Strimzi's mirror-maker-2-extensions and AWS's mirrormaker2-msk-migration.
    "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy": "identity",
    "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy": "identity",
}
_KIP_690: Final = KafkaVersion(3, 1)  # the separator is part of internal names
_OLD_KEYS_REMOVED: Final = KafkaVersion(4, 0)
_SOURCE, _CHECKPOINT, _HEARTBEAT = ConnectorKind
_VERSION: Final = re.compile(r"\d+\.\d+(\.\d+)?", re.ASCII)


def flow_section(
    flow: MirrorFlow,
    kafka_version: str | None,
    *,
    writer: MirrorFlow | None = None,
    providers: Collection[str] = (),
) -> tuple[dict[str, object], tuple[Finding, ...]]:
    """Return what `FlowConfig` accepts, as far as it differs from its defaults, and findings.

    *kafka_version* is MirrorMaker 2's; None means the newest, but with old keys. *writer* writes
    the heartbeats that *flow* replicates, if that is known. Values of *flow* that still refer to
    one of the config *providers* are not known: errors with the check `unknown-KEY`. These and
    `custom-KEY` do not matter if mm2slo.yaml sets KEY for the flow.
    """
    version = kafka_release(kafka_version or "")
    section = _Section(flow, writer, version, providers, {"flow": flow.flow.label})
    if (stated := _VERSION.match(kafka_version or "")) and not keeps_offset_syncs(stated[0]):
        section.values["kafka_version"] = stated[0]
    section.add_fields()
    section.check_class("topics", _SOURCE, "topic.filter.class", "DefaultTopicFilter")
    section.check_class("groups", _CHECKPOINT, "group.filter.class", "DefaultGroupFilter")
    section.add_policy()
    section.add_canary()
    source = flow.connectors.get(_SOURCE)
    settings = {key: each.value for key, each in source.settings.items()} if source else {}
    if transforms := transform_settings(settings):
        section.values["transforms"] = transforms
    section.add_connect_names()
    section.remove_invalid()
    return section.values, tuple(section.findings)


@dataclass(slots=True)
class _Section:
    flow: MirrorFlow
    writer: MirrorFlow | None
    version: KafkaVersion | None
    providers: Collection[str]
    values: dict[str, object]
    findings: list[Finding] = field(default_factory=list)
    # Of values that FlowConfig may refuse, by their fields.
    settings: dict[str, Setting] = field(default_factory=dict)

    def setting(self, name: str, kind: ConnectorKind | None, key: str) -> Setting | None:
        """The setting *key*, which decides about the field *name*, if it is read and known."""
        flow = self.writer if kind is _HEARTBEAT else self.flow
        if flow is None:
            return None
        owner = flow.connectors.get(kind) if kind else flow.worker
        setting = find_setting(owner.settings, key) if owner else None
        if setting is None:
            return None
        # Kafka 2.7 to 3.9 read both names (KIP-629), 4.0 and later only the new ones.
        is_new = self.version is None or self.version >= _OLD_KEYS_REMOVED
        if is_new and setting.key.endswith(tuple(RENAMED)):
            what, why = f"{setting.key} is the old name of {key}", "Kafka 4 ignores it"
            self._warn("old-key", setting, what, why, f"write {key}")
        if not is_read(setting, key, self.version):
            return None
        if not any(each[1] in self.providers for each in REFERENCE.finditer(setting.value)):
            return setting
        what, why = f"{setting.key} has a reference", "only MirrorMaker 2 knows its value"
        action = f"write the value itself, or set {name} of the flow in mm2slo.yaml"
        self._error(f"unknown-{name}", setting, what, why, action)
        return None

    def add_fields(self) -> None:
        if self.version:
            self._put("topics_exclude", default_topics_exclude(self.version))
        for name, (kind, key, convert) in FIELDS.items():
            setting = self.setting(name, kind, key)
            if setting is None:
                continue
            self.settings[name] = setting
            try:
                value = convert(setting.value)
                if value is not None:
                    self._put(name, value)
            except UnreadablePatternError as error:
                self._custom(name, setting, f"cannot be evaluated by mm2slo: {error.problem}")
            except ValueError as error:
                what, why = f"{setting.key} cannot be used: {error}", "Kafka Connect rejects it"
                self._error("invalid-value", setting, what, why, f"correct {setting.key}")

    def _put(self, name: str, value: object) -> None:
        if value == FlowConfig.model_fields[name].default:
            self.values.pop(name, None)
        elif isinstance(value, float):
            self.values[name] = format_duration(value)
        else:
            self.values[name] = list(value) if isinstance(value, tuple) else value

    def check_class(self, name: str, kind: ConnectorKind, key: str, usual: str) -> None:
        setting = self.setting(name, kind, key)
        if setting and setting.value.strip() != MIRROR_PACKAGE + usual:
            self._custom(name, setting, "is a class that mm2slo does not know")

    def add_policy(self) -> None:
        policy: dict[str, object] = {}
        class_name, separator, dots = (
            self.setting("policy", _SOURCE, f"replication.policy.{key}")
            for key in ("class", "separator", "internal.topic.separator.enabled")
        )
        if class_name and class_name.value.strip() not in _POLICIES:
            self._custom("policy", class_name, "is a class that mm2slo does not know")
        elif class_name and _POLICIES[class_name.value.strip()] == "identity":
            policy["kind"] = "identity"
        if separator and not separator.value.strip() and not policy:
            self._custom("policy", separator, "is empty")
        elif separator and separator.value != ".":
            # ReplicationPolicy reads the switch of KIP-949 only beside a separator of its own;
            # before KIP-690 internal names always had dots.
            policy["separator"] = separator.value
            if (dots and dots.value.lower() != "true") or (
                self.version and self.version < _KIP_690
            ):
                policy["internal_separator"] = False
        for side in ("source", "target"):
            setting = self.setting("policy", _SOURCE, f"{side}.cluster.alias")
            alias = getattr(self.flow.flow, side)
            if setting and trim(setting.value) != alias:
                self._custom("policy", setting, f"is not {alias}, the alias of the cluster")
        if policy:
            self.values["policy"] = policy

    def add_canary(self) -> None:
        """Switch off canaries where heartbeats topics do not get their usual name."""
        policy = self.setting("policy", _SOURCE, "replication.policy.class")
        separator = self.setting("policy", _SOURCE, "replication.policy.separator")
        replicated = self.setting("canary", _SOURCE, "heartbeats.replication.enabled")
        name = policy.value.strip() if policy else ""
        is_foreign = name in _POLICIES and not name.startswith(MIRROR_PACKAGE)
        cause = policy if is_foreign else replicated if replicated and replicated.is_false else None
        # Without a separator, no name is that of heartbeats (DefaultReplicationPolicy).
        if separator and not separator.value and "policy" in self.values:
            cause = separator
        if cause:
            self.values["canary"] = {"carrier": "off"}
            what = f"with {cause.key} = {cause.value.strip()} <alias>.heartbeats may not exist"
            action = "set canary: {carrier: topic} in mm2slo.yaml"
            self._warn("no-heartbeats", cause, what, "canaries in it would be lost", action)

    def add_connect_names(self) -> None:
        worker, names = self.flow.worker, dict[str, object]()
        for kind in ("offsets", "status", "configs"):
            name = f"{kind}_topic"
            # A source connector may keep its offsets in a topic of its own (KIP-618).
            key, is_own = "offsets.storage.topic", kind == "offsets"
            own = self.setting("connect", _SOURCE, key) if is_own else None
            setting = own or self.setting("connect", None, WORKER_NAMES[name])
            topic = trim(setting.value) if setting else getattr(worker, name)
            is_unknown = setting is None and WORKER_NAMES[name] in worker.settings
            if not is_unknown and topic not in {None, connect_topic(kind, self.flow.flow.source)}:
                names[name] = topic
                self.settings |= {name: setting} if setting else {}
        for connector in self.flow.connectors.values():
            if connector.name != connector.kind:
                names[f"{connector.kind.name.lower()}_connector"] = connector.name
        if names:
            self.values["connect"] = names

    def remove_invalid(self) -> None:
        """Report and remove what `FlowConfig` refuses."""
        try:
            FlowConfig.model_validate(self.values)
        except ValidationError as invalid:
            for error in invalid.errors(include_url=False):
                *path, name = (str(each) for each in error["loc"] if isinstance(each, str))
                setting = self.settings.get(name)
                shown = f"{setting.key}: {setting.value[:50]!r}" if setting else name
                what = f"{shown} {error['msg'].removeprefix('Value error, ')}"
                place, why = setting or self.flow, "Kafka Connect rejects it"
                action = f"correct {setting.key if setting else name}"
                self._error("invalid-value", place, what, why, action)
                section = self.values.get(path[0]) if path else self.values
                if isinstance(section, dict):
                    section.pop(name, None)
                if section == {}:
                    del self.values[path[0]]

    def _custom(self, name: str, setting: Setting, problem: str) -> None:
        what = f"{setting.key}: {setting.value[:200]!r} {problem}"
        why = "mm2slo cannot conclude which names MirrorMaker 2 selects and writes"
        action = f"set {name} of the flow {self.flow.flow} in mm2slo.yaml"
        self._error(f"custom-{name}", setting, what, why, action)

    def _error(self, check: str, place: Setting | MirrorFlow, *texts: str) -> None:
        self.findings.append(Finding(check, FindingSeverity.ERROR, place.origin, *texts))

    def _warn(self, check: str, setting: Setting, *texts: str) -> None:
        self.findings.append(Finding(check, FindingSeverity.WARNING, setting.origin, *texts))


_POLICY: Final = ("policy.kind", "policy.separator", "policy.internal_separator")

_COMPARED: Final = {
    ConnectorKind.SOURCE: (
        *("topics", "topics_exclude", "config_properties_exclude", "isolation"),
        *("offset_syncs_location", "offset_lag_max", *_POLICY),
    ),
    ConnectorKind.CHECKPOINT: ("groups", "groups_exclude", "checkpoint_interval"),
}


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
    unknown = {each.check.removeprefix("custom-") for each in findings}
    if "policy" in unknown:
        unknown |= {*_POLICY}
    if "topics_exclude" not in section:
        unknown.add("topics_exclude")  # the default depends on MirrorMaker 2's version
    for kind in connectors:
        for name in _COMPARED[kind]:
            configured, used = (value_text(attrgetter(name)(each)) for each in (flow, actual))
            if configured != used and name not in unknown:
                yield SettingDifference(name, configured, used)


def _settings(connector: ConnectorConfig, origin: Origin) -> dict[str, Setting]:
    return {key: Setting(key, value, origin) for key, value in connector.settings.items()}
