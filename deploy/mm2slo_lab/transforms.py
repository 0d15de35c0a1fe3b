"""Single message transforms for the lab's flows (pure): real loss, on purpose.

What these return goes into a topology's `mm2_properties`, or into `MirrorMaker.configure`.
"""

from __future__ import annotations

_PACKAGE = "org.apache.kafka.connect.transforms"


def dropping(header: str) -> dict[str, str]:
    """Properties that make the flows drop each record with that *header*, and only those.

    MirrorMaker 2 then goes past them as if it had copied them: its position advances with the
    next record that it does copy, and the target never has them. Its own heartbeats and
    checkpoints pass through the same transforms; they carry no such header.
    """
    return {
        "transforms": "drop",
        "transforms.drop.type": f"{_PACKAGE}.Filter",
        "transforms.drop.predicate": "marked",
        "predicates": "marked",
        "predicates.marked.type": f"{_PACKAGE}.predicates.HasHeaderKey",
        "predicates.marked.name": header,
    }
