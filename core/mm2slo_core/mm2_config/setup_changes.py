"""What changes when one configuration of MirrorMaker 2 replaces another.

Connect keeps the position of a source partition in its offsets topic, under the name of the source
connector and the alias of the source (`MirrorUtils.wrapPartition`), and also in the connector's own
topic (`ConnectorOffsetBackingStore`). If one of them changes, everything is copied again. The name
of the copy is not a part of it, so that a renamed copy starts at the position.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Final

from mm2slo_core.mm2_config.compared_flow import SourceNames, read_flows
from mm2slo_core.mm2_config.connector_keys import expected_items
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind, Form
from mm2slo_core.mm2_config.setting_effects import consequence_of, default_value, means_the_same

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from mm2slo_core.mm2_config.compared_flow import ComparedFlow
    from mm2slo_core.mm2_config.mirror_setup import MirrorSetup
    from mm2slo_core.topology import Flow

_SOURCE, _, _HEARTBEAT = ConnectorKind
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


def compare(
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
