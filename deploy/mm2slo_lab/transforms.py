"""Single message transforms for the lab's flows (pure): real loss, on purpose.

What these return goes into a topology's `mm2_properties`, or into `MirrorMaker.configure`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_core.topology import Flow

_PACKAGE = "org.apache.kafka.connect.transforms"


def dropping(flow: Flow, header: str) -> dict[str, str]:
    """Properties that make *flow* drop each record with that *header*, and only those.

    MirrorMaker 2 then goes past them as if it had copied them: its position advances with the
    next record that it does copy, and the target never has them. Its own heartbeats and
    checkpoints pass through the same transform; they carry no such header.

    All keys have the flow's prefix: of unprefixed ones dedicated mode passes on `transforms`
    alone, without what it names, and then refuses the connector's whole configuration
    (`MirrorMakerConfig.connectorBaseConfig`).
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
