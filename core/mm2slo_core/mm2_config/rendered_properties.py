"""The properties file of MirrorMaker 2's dedicated mode for a setup."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Final

from mm2slo_core.internal_topics import connect_topic
from mm2slo_core.mm2_config.connector_keys import connector_key
from mm2slo_core.mm2_config.mirror_setup import EMIT, ConnectorKind
from mm2slo_core.mm2_config.portable_setup import portable_setup
from mm2slo_core.mm2_config.setting_effects import default_value
from mm2slo_core.properties_text import dump_properties
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mm2slo_core.mm2_config.mirror_setup import MirrorFlow, MirrorSetup
    from mm2slo_core.mm2_config.portable_setup import PortableSetup, Rendered

_PACKAGE: Final = "org.apache.kafka.connect.mirror."


def render_properties(setups: Sequence[MirrorSetup]) -> Rendered:
    """The file `mm2.properties` for *setups*."""
    setup = portable_setup(setups)
    entries = {"clusters": ", ".join(setup.clusters)}
    for key, each in ((key, each) for given in setups for key, each in given.process.items()):
        entries[key] = setup.references.hide("mm2-process", key, each).value
    for alias in setup.clusters:
        entries |= {f"{alias}.{key}": value for key, value in setup.client(alias).items()}
    for pair in (Flow(*aliases) for aliases in permutations(setup.clusters, 2)):
        flow = setup.flows.get(pair)
        # A pair without a flow has a herder for heartbeats, unless they are switched off.
        settings = _connectors(setup, flow) if flow else [("emit.heartbeats.enabled", "false")]
        entries |= {f"{pair}.{key}": value for key, value in settings}
    for flow in setup.flows.values():
        for key, value in _worker(setup, flow):
            if entries.setdefault(f"{flow.flow.target}.{key}", value) != value:
                what = f"{key} of the workers of {flow.flow} differs from that of other flows"
                setup.report(flow.origin, what, f"run the flows to {flow.flow.target} apart")
    entries |= setup.provider_lines(entries.values())
    text = dump_properties(entries)
    return {"mm2.properties": setup.references.note(text) + text}, setup.findings


def _connectors(setup: PortableSetup, flow: MirrorFlow) -> Iterator[tuple[str, str]]:
    """The settings of a flow, which all of its connectors share."""
    yield "enabled", str(ConnectorKind.SOURCE in flow.connectors).lower()
    yield from ((keys[0], "false") for kind, keys in EMIT.items() if kind not in flow.connectors)
    connectors = flow.connectors.values()
    for each in connectors:
        setup.check_name(each, each.kind)
        if each.state != "running":
            setup.report(each.origin, f"{each.name} is {each.state}", "stop MirrorMaker 2 instead")
    for key in dict.fromkeys(key for each in connectors for key in each.settings):
        entry = connector_key(key)
        acting = [each for each in connectors if entry is None or each.kind in entry.kinds]
        usual = default_value(key)
        values = [each.settings[key].value if key in each.settings else usual for each in acting]
        if len({value.removeprefix(_PACKAGE) for value in values}) > 1:
            what = f"{key} of {flow.flow} differs between {' and '.join(e.kind for e in acting)}"
            setup.report(flow.origin, what, f"check that of {acting[0].kind}, which is for all")
        if key in acting[0].settings:
            yield key, acting[0].settings[key].value


def _worker(setup: PortableSetup, flow: MirrorFlow) -> Iterator[tuple[str, str]]:
    source, target = flow.flow.source, flow.flow.target
    shared = sum(pair.target == target for pair in setup.flows) > 1
    for key, name in flow.worker.names.items():
        kind = key.partition(".")[0].replace("config", "configs").replace("offset", "offsets")
        usual = f"{source}-mm2" if kind == "group" else connect_topic(kind, source)
        if name not in {None, usual} and shared:
            what = f"{key} of {flow.flow} is {name}, but each flow to {target} needs its own"
            setup.report(flow.origin, what, f"expect {usual}")
        elif name not in {None, usual}:
            yield key, name
    for key, each in flow.worker.settings.items():
        # Settings of consumers of a cluster would apply to the flows from it.
        if not key.startswith("consumer."):
            yield key, each.value
