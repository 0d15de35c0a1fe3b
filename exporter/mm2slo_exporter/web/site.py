"""What the web server asks of the exporter. Nothing here waits for a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.topology import Flow
    from mm2slo_exporter.exposition import Snapshot


@dataclass(frozen=True, slots=True)
class FlowReadiness:
    """Whether everything a flow's figures need was read once or declared unreachable."""

    flow: Flow
    ready: bool
    waiting_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Readiness:
    """Ready once each flow is."""

    ready: bool
    flows: tuple[FlowReadiness, ...]
    stale_flows: tuple[str, ...] = ()
    """Labels of the flows that are no longer evaluated: the process needs a restart."""


@dataclass(frozen=True, slots=True)
class FlowOverview:
    """One line of the page: a figure that is not known now is None."""

    flow: Flow
    state: str
    reason: str
    ready: bool
    lag_records: int | None
    lag_seconds: float | None
    stalled_partitions: int | None = None
    groups_ready: int | None = None
    groups: int | None = None
    unjudged: Sequence[tuple[str, Sequence[str]]] = ()
    """Names of groups outside `groups`, by what they are."""
    group_types_known: bool = True


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """What a reload came to; the message holds no secret."""

    done: bool
    message: str


class Site(Protocol):
    """The exporter as its web server sees it; each answer is at hand already."""

    def snapshot(self) -> Snapshot:
        """The newest finished exposition; from the start, with the exporter's own series."""
        ...

    def readiness(self) -> Readiness:
        """Which flow waits for what."""
        ...

    def overview(self) -> tuple[FlowOverview, ...]:
        """The flows, for the page."""
        ...

    def reload(self) -> ReloadResult:
        """Read the configuration again and apply it."""
        ...
