"""`canary:`, the records that mm2slo sends through a flow."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from mm2slo_core.config.durations import Duration, Interval, duration_label
from mm2slo_core.config.field_types import Section, TopicName


class CanaryCarrier(StrEnum):
    """The topic that carries the canary."""

    HEARTBEATS = "heartbeats"
    TOPIC = "topic"
    OFF = "off"


class CanaryConfig(Section):
    """How the canary is sent, and its deadline."""

    carrier: CanaryCarrier = CanaryCarrier.HEARTBEATS
    """`heartbeats` needs no change in MirrorMaker 2; `topic` covers every task."""
    topic: TopicName = "mm2slo.canary"
    """Canary topic for `carrier: topic`."""
    interval: Interval = 1.0
    """Time between two canaries."""
    deadline: Duration = 60.0
    """A canary that arrives later is bad for availability."""
    latency_tiers: Annotated[tuple[Duration, ...], Field(min_length=1)] = (10.0, 60.0)
    """Thresholds of the latency SLI, ascending, at most `deadline`."""

    @property
    def tiers(self) -> dict[str, float]:
        """Threshold in seconds by `tier` label, ascending: `{"10s": 10.0, "60s": 60.0}`."""
        return {duration_label(seconds): seconds for seconds in self.latency_tiers}
