"""What changes when one configuration of MirrorMaker 2 replaces another.

Connect keeps the position of a source partition in its offsets topic, under the name of the source
connector and the alias of the source (`MirrorUtils.wrapPartition`), and also in the connector's own
topic (`ConnectorOffsetBackingStore`). If one of them changes, everything is copied again. The name
of the copy is not a part of it, so that a renamed copy starts at the position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Final, NamedTuple

from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.java_values import split_list
from mm2slo_core.mm2_config.connector_settings import (
    consequence_of,
    default_value,
    effective_values,
    expected_items,
    kafka_release,
    means_the_same,
)
from mm2slo_core.mm2_config.flow_settings import flow_section
from mm2slo_core.mm2_config.mirror_setup import (
    Connector,
    ConnectorKind,
    Form,
    MirrorFlow,
    MirrorSetup,
)
from mm2slo_core.replication_policy import (
    DEFAULT_VERSION,
    KafkaVersion,
    ReplicationPolicy,
    internal_topics,
)
from mm2slo_core.topic_filters import GroupFilter
from mm2slo_core.topic_selection import replicated_topics, replication_policy
from mm2slo_core.topology import Flow

_SOURCE, _CHECKPOINT, _HEARTBEAT = ConnectorKind

# The key of the offsets topic, and how to get positions into another one.
_POSITIONS: Final = {
    Form.PROPERTIES: (
        "{target}.offset.storage.topic",
        "write them to the new offsets topic under the new key; dedicated mode has no API for it",
    ),
    Form.STRIMZI: (
        "offsetStorageTopic",
        "create {name} with state: stopped and set them by alterOffsets (Strimzi 0.44 and newer)",
    ),
    Form.CONNECT_JSON: (
        "offset.storage.topic",
        "create {name} with initial_state: STOPPED (Kafka 3.7 and newer) and set them by "
        "PATCH /connectors/{name}/offsets",
    ),
}
_MOST_SHOWN: Final = 300


class Effect(StrEnum):
    """What a change does."""

    FLOW_ADDED = "flow-added"
    FLOW_REMOVED = "flow-removed"
    FLOW_FAILS = "flow-fails"
    COPIED_AGAIN = "copied-again"
    RENAMED = "copies-renamed"
    TOPICS_START = "topics-start"
    TOPICS_STOP = "topics-stop"
    GROUPS_START = "groups-start"
    GROUPS_STOP = "groups-stop"
    SETTING = "setting"


_CONSEQUENCES: Final = {
    Effect.FLOW_ADDED: "all records of its topics are copied",
    Effect.FLOW_REMOVED: "nothing is copied any more; existing copies stay",
    Effect.TOPICS_START: "all their records are copied, unless auto.offset.reset is latest",
    Effect.TOPICS_STOP: "no new records are copied; existing copies stay",
    Effect.GROUPS_START: "their offsets are translated",
    Effect.GROUPS_STOP: "their offsets are no longer translated",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One change. *names* are those of topics, copies or groups; None if they are not known."""

    effect: Effect
    what: str
    consequence: str
    action: str = ""
    names: tuple[str, ...] | None = None


def compare_setups(
    old: Sequence[MirrorSetup],
    new: Sequence[MirrorSetup],
    names: Mapping[str, SourceNames],
    versions: tuple[str | None, str | None] = (None, None),
) -> tuple[dict[str, tuple[Change, ...]], list[str]]:
    """The changes of each flow that has any, and notes of what was assumed or not compared.

    *names* is by the alias of the source. A Kafka version that is given or stated for one side
    only is assumed for both.
    """
    stated = [
        given or next((each.kafka_version for each in setups if each.kafka_version), None)
        for given, setups in zip(versions, (old, new), strict=True)
    ]
    assumed, notes = stated[0] or stated[1], list[str]()
    if assumed and not all(stated):
        notes.append(f"only one side states its Kafka version; assumed {assumed} for both")
    before = read_flows(old, assumed, notes)
    after = read_flows(new, stated[1] or assumed, notes)
    found = {}
    for one, two in _pairs(before, after):
        flows = dict.fromkeys(each.flow.flow for each in (one, two) if each)
        known = next((names[each.source] for each in flows if each.source in names), SourceNames())
        if changes := tuple(_changes(one, two, known)):
            found[", now ".join(map(str, flows))] = changes
    return found, list(dict.fromkeys(notes))


def _pairs(
    before: Mapping[Flow, ComparedFlow], after: Mapping[Flow, ComparedFlow]
) -> Iterator[tuple[ComparedFlow | None, ComparedFlow | None]]:
    """Flows with the same aliases, or else with the same clusters under other aliases."""
    renamed = {
        label: other
        for label in before.keys() - after.keys()
        for other in after.keys() - before.keys()
        if all(map(frozenset.intersection, before[label].servers, after[other].servers))
    }
    for label in sorted(before.keys() | after.keys()):
        if label not in renamed.values():
            yield before.get(label), after.get(renamed.get(label, label))


def _changes(
    old: ComparedFlow | None, new: ComparedFlow | None, names: SourceNames
) -> Iterator[Change]:
    was, will = (each if each and _SOURCE in each.connectors else None for each in (old, new))
    if was and will:
        yield from _copy_changes(was, will, names)
    elif side := was or will:
        effect = Effect.FLOW_REMOVED if was else Effect.FLOW_ADDED
        copies = side.copies(names)
        yield _selected(effect, str(side.flow.flow), None if copies is None else copies.keys())
    if new:
        known = dict(_refused_lists(old)) if old else {}
        for key, what in _refused_lists(new):
            if key not in known:
                consequence = "MirrorMaker 2 refuses it: the flow does not start"
                yield Change(Effect.FLOW_FAILS, what, consequence, f"correct {key} in NEW")
    before, after = (each.groups(names) if each else frozenset() for each in (old, new))
    yield from _selection_changes("group", before, after)
    emits, will_emit = (bool(each and _HEARTBEAT in each.connectors) for each in (old, new))
    if emits != will_emit and (side := new or old):
        target = side.flow.flow.target
        what = f"heartbeats are {'no longer ' * emits}written to {target}"
        yield Change(Effect.SETTING, what, f"they show that replication from {target} works")
    if old and new:
        yield from _setting_changes(old, new)


def _copy_changes(old: ComparedFlow, new: ComparedFlow, names: SourceNames) -> Iterator[Change]:
    before, after, common = old.copies(names), new.copies(names), None
    renamed = [(old.copy_of("TOPIC"), new.copy_of("TOPIC"))]
    if before is not None and after is not None:
        yield from _selection_changes("topic", before.keys(), after.keys())
        common = tuple(topic for topic in before if topic in after)
        renamed = [(before.get(topic), after.get(topic)) for topic in common]
    losses = dict(_losses(old, new))
    if losses:
        way = _POSITIONS[new.form][1].format(name=new.connectors[_SOURCE].name)
        if all(losses.values()):
            way = f"use {' and '.join(losses.values())} in NEW"
        yield Change(
            Effect.COPIED_AGAIN,
            "; ".join(losses),
            f"without positions, all records that {old.flow.flow.source} still has are copied "
            "again; after a failover, groups read them again",
            f"to keep the positions, stop OLD, then {way}",
            common,
        )
    if changed := tuple(f"{one} -> {two}" for one, two in renamed if one and two and one != two):
        consequence, action = "existing copies stay, without new records", "move consumers"
        if not losses:
            consequence += "; the new copies start at the current position"
            action += "; to copy all records again, reset the offsets of the connector"
        what = changed[0] if common is None else f"{len(changed)} of {len(common)} copies"
        yield Change(Effect.RENAMED, what, consequence, action, None if common is None else changed)


def _refused_lists(flow: ComparedFlow) -> Iterator[tuple[str, str]]:
    """Lists that MirrorMaker 2 of this version refuses, by key."""
    settings = chain(*(each.settings.items() for each in flow.connectors.values()))
    for name, setting in dict(settings).items():
        expected = expected_items(name, setting.value, flow.release)
        if expected and "${" not in setting.value:
            yield setting.key, f"{setting.key} = {setting.value}; expected {expected}"


def _losses(old: ComparedFlow, new: ComparedFlow) -> Iterator[tuple[str, str]]:
    """Why positions are not found, and what keeps them in NEW's form, if anything."""
    # The name and the alias are in the key of each position, as Connect writes it
    # (OffsetStorageWriter, MirrorUtils.wrapPartition).
    one, two = (each.connectors[_SOURCE].name for each in (old, new))
    if one != two:
        yield f"connector {one} -> {two}", f"name: {one}" if new.form is Form.CONNECT_JSON else ""
    topics = old.offset_topics(), new.offset_topics()
    if all(topics) and not {*topics[0]} & {*topics[1]}:
        key = _POSITIONS[new.form][0].format(target=new.flow.flow.target)
        yield f"offsets topic {topics[0][0]} -> {topics[1][0]}", f"{key}: {topics[0][0]}"
    one, two = old.flow.flow.source, new.flow.flow.source
    if one != two:
        yield f"source alias {one} -> {two}", f"the alias {one}"


def _selection_changes(
    kind: str, before: AbstractSet[str] | None, after: AbstractSet[str] | None
) -> Iterator[Change]:
    for verb, larger, smaller in (("start", after, before), ("stop", before, after)):
        effect = Effect(f"{kind}s-{verb}")
        if larger is None and smaller is not None and not smaller:
            yield _selected(effect, f"the {kind}s of the flow", None)
        elif larger and smaller is not None and (found := larger - smaller):
            yield _selected(effect, f"{len(found)} {kind}{'s' * (len(found) > 1)}", found)


def _selected(effect: Effect, what: str, names: AbstractSet[str] | None) -> Change:
    known = None if names is None else tuple(sorted(names))
    return Change(effect, what, _CONSEQUENCES[effect], names=known)


def _setting_changes(old: ComparedFlow, new: ComparedFlow) -> Iterator[Change]:
    kinds = old.connectors.keys() & new.connectors.keys()
    before, after = old.values(kinds), new.values(kinds)
    for key in sorted(before.keys() | after.keys()):
        one, two = (each.get(key, default_value(key)) for each in (before, after))
        consequence = consequence_of(key)
        compared_by_names = old.config and new.config and key.startswith("replication.policy.")
        if consequence is None or compared_by_names or means_the_same(key, one, two):
            continue
        if key.startswith(("transforms", "predicates")):  # their options may be secrets
            yield Change(Effect.SETTING, key, consequence)
        else:
            values = (each[:_MOST_SHOWN] or "not set" for each in (one, two))
            yield Change(Effect.SETTING, f"{key}: {' -> '.join(values)}", consequence)


class SourceNames(NamedTuple):
    """Topics and groups of a source cluster; None if not known."""

    topics: frozenset[str] | None = None
    groups: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ComparedFlow:
    """A flow before or after. *config* is None if it cannot be interpreted.

    *connectors* are those that work, *servers* those of the source and of the target.
    """

    flow: MirrorFlow
    connectors: Mapping[ConnectorKind, Connector]
    config: FlowConfig | None
    version: KafkaVersion | None
    form: Form
    servers: tuple[frozenset[str], ...]

    @property
    def release(self) -> KafkaVersion:
        return self.version or DEFAULT_VERSION

    @property
    def policy(self) -> ReplicationPolicy | None:
        return replication_policy(self.config, self.release) if self.config else None

    def copy_of(self, topic: str) -> str | None:
        return self.policy.remote_topic(self.flow.flow.source, topic) if self.policy else None

    def copies(self, names: SourceNames) -> dict[str, str] | None:
        """Names of copies by topic; None if not known."""
        if self.config is None or names.topics is None:
            return None
        pairs = replicated_topics(self.config, names.topics, version=self.release)
        return {pair.source: pair.target for pair in pairs}

    def groups(self, names: SourceNames) -> frozenset[str] | None:
        """Groups whose offsets are translated; None if not known."""
        # MirrorCheckpointTask translates by the offset syncs that source tasks write.
        if not self.connectors.keys() >= {_SOURCE, _CHECKPOINT}:
            return frozenset()
        if self.config is None or names.groups is None:
            return None
        selected = GroupFilter(self.config.groups, self.config.groups_exclude)
        return frozenset(filter(selected.matches, names.groups))

    def values(self, kinds: AbstractSet[ConnectorKind]) -> dict[str, str]:
        """What can differ between flows that have the connectors *kinds* in common."""
        found = effective_values(self.flow, kinds, self.version, self.form)
        if kinds >= {_SOURCE, _CHECKPOINT} and self.config and self.policy:
            location = self.config.offset_syncs_location
            topics = internal_topics(self.flow.flow, self.policy, location)
            found["offset syncs"] = f"{topics.offset_syncs.topic} on the {location}"
            found["checkpoints"] = topics.checkpoints.topic
        if _SOURCE in kinds:
            found["source servers"], found["target servers"] = map(",".join, self.servers)
        return found

    def offset_topics(self) -> list[str]:
        worker, own = self.flow.worker, self.connectors[_SOURCE].settings
        settings = (own.get("offsets.storage.topic"), worker.settings.get("offset.storage.topic"))
        return [*filter(None, [worker.offsets_topic]), *(each.value for each in settings if each)]


def read_flows(
    setups: Sequence[MirrorSetup], version: str | None, notes: list[str]
) -> dict[Flow, ComparedFlow]:
    """The flows of *setups*; adds to *notes* what cannot be interpreted."""
    clusters = {alias: each.client for setup in setups for alias, each in setup.clusters.items()}
    found = {}
    for flow, where in ((flow, setup) for setup in setups for flow in setup.flows):
        section, findings = flow_section(flow, version, providers=where.providers)
        errors = [each for each in findings if each.is_error]
        notes += (
            f"{each.origin}: names of {flow.flow} are not compared: {each.what}" for each in errors
        )
        servers = (
            clusters.get(alias, {}).get("bootstrap.servers")
            for alias in (flow.flow.source, flow.flow.target)
        )
        found[flow.flow] = ComparedFlow(
            flow,
            connectors=flow.working_connectors,
            config=None if errors else FlowConfig.model_validate(section),
            version=kafka_release(version or ""),
            form=where.form,
            servers=tuple(frozenset(split_list(each.value) if each else ()) for each in servers),
        )
    return found
