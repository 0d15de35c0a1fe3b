"""Single message transforms that cause loss on purpose (pure).

The properties go into `mm2_properties` of a topology, or into `MirrorMaker.configure`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_core.topology import Flow

_PACKAGE = "org.apache.kafka.connect.transforms"


def dropping(flow: Flow, header: str) -> dict[str, str]:
    """Return properties that make *flow* drop records with *header*.

    The position advances past them with the next replicated record, and the target never gets
    them. Heartbeats and checkpoints pass the same transform without such a header.

    All keys have the prefix of the flow: without it, dedicated mode passes on `transforms` but not
    its settings, and rejects the connector configuration (`MirrorMakerConfig.connectorBaseConfig`).
    """
    settings = {
        "transforms": "drop",
        "transforms.drop.type": f"{_PACKAGE}.Filter",
        "transforms.drop.predicate": "marked",
        "predicates": "marked",
        "predicates.marked.type": f"{_PACKAGE}.predicates.HasHeaderKey",
        "predicates.marked.name": header,
    }
    return {f"{flow.label}.{key}": value for key, value in settings.items()}
