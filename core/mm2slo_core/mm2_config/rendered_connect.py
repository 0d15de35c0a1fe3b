"""Connectors for Kafka Connect's REST API, and the properties of their workers, for a setup."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from mm2slo_core.mm2_config.portable_setup import portable_setup
from mm2slo_core.properties_text import dump_properties

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.mm2_config.mirror_setup import Connector, MirrorFlow, MirrorSetup
    from mm2slo_core.mm2_config.portable_setup import PortableSetup, Rendered

_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"


def render_connect(setups: Sequence[MirrorSetup]) -> Rendered:
    """A folder for each group of workers: their properties, and a body of POST per connector."""
    setup = portable_setup(setups)
    files: dict[str, str] = {}
    groups: dict[tuple[str, ...], list[MirrorFlow]] = defaultdict(list)
    for flow in setup.flows.values():
        groups[flow.flow.target, *map(str, flow.worker.names.values())].append(flow)
    for (target, group, *_), flows in groups.items():
        folder = re.sub(r"[^\w.-]+", "-", f"{target}-{group}")
        client = setup.client(target)
        worker = {"bootstrap.servers": client.pop("bootstrap.servers")}
        for prefix in ("", "producer.", "consumer.", "admin."):
            worker |= {f"{prefix}{key}": value for key, value in client.items()}
        worker |= {key: name for key, name in flows[0].worker.names.items() if name}
        worker |= {f"{part}.converter": _BYTES for part in ("key", "value", "header")}
        bodies = {}
        for flow in flows:
            worker |= {key: each.value for key, each in flow.worker.settings.items()}
            for each in flow.connectors.values():
                body = json.dumps(_body(setup, flow, each), indent=2, ensure_ascii=False)
                bodies[f"{folder}/{flow.flow.slug}.{each.kind}.json"] = f"{body}\n"
        worker |= setup.provider_lines([*worker.values(), *bodies.values()])
        text = dump_properties(worker)
        note = setup.references.note("".join([text, *bodies.values()]))
        files |= {f"{folder}/connect-distributed.properties": note + text} | bodies
    return files, setup.findings


def _body(setup: PortableSetup, flow: MirrorFlow, connector: Connector) -> dict[str, object]:
    config = {"connector.class": f"org.apache.kafka.connect.mirror.{connector.kind}"}
    for side, alias in (("source", flow.flow.source), ("target", flow.flow.target)):
        config[f"{side}.cluster.alias"] = alias
        config |= {f"{side}.cluster.{key}": text for key, text in setup.client(alias).items()}
    config |= {key: each.value for key, each in connector.settings.items()}
    # KIP-980; as of Kafka 3.7.
    state = {} if connector.state == "running" else {"initial_state": connector.state.upper()}
    return {"name": connector.name, **state, "config": config}
