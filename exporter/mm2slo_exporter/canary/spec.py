"""What the canary process needs to know of one flow; pickled to it, so it holds plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_kafka.offsets import Isolation


@dataclass(frozen=True, slots=True)
class CanarySpec:
    """One flow, as the canary process serves it. Client properties hold secrets: never printed."""

    flow: str
    instance: str
    source_alias: str
    target_alias: str
    source_client: Mapping[str, str] = field(repr=False)
    target_client: Mapping[str, str] = field(repr=False)
    heartbeats_topic_on_target: str | None
    """None: the flow is not MirrorMaker 2's, and has no heartbeats."""
    carrier: str
    """`heartbeats`, `topic`, or `off`: then nothing is sent, and heartbeats are only watched."""
    source_topic: str
    target_topic: str
    interval_seconds: float
    restore_seconds: float
    """How far back canaries of an earlier process are looked for at start."""
    target_isolation: Isolation = "read_uncommitted"
    """`read_committed` where MirrorMaker 2 writes in transactions: what it takes back after a
    crash never arrived."""
