"""The settings of one flow for the canary process; picklable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class CanarySpec:
    """The settings of one flow. Client properties contain secrets and are never printed."""

    flow: str
    instance: str | None
    """Name of this replica in its canaries; None: by a leased number."""
    source_alias: str
    target_alias: str
    source_client: Mapping[str, str] = field(repr=False)
    target_client: Mapping[str, str] = field(repr=False)
    heartbeats_topic_on_target: str | None
    """None: the flow's engine has no heartbeats, or the name of their copy is not known."""
    carrier: str
    """`heartbeats`, `topic`, or `off`; with `off`, nothing is sent and heartbeats are only read."""
    source_topic: str
    target_topic: str
    interval_seconds: float
    restore_seconds: float
    """How far back canaries of an earlier process are read at start."""
