"""`canary:`, our own records that prove a flow works."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from mm2slo_core.config.durations import Duration, Interval, duration_label
from mm2slo_core.config.fields import Section, TopicName


class CanaryCarrier(StrEnum):
    """The topic that carries the canary through MirrorMaker 2."""

    HEARTBEATS = "heartbeats"
    TOPIC = "topic"
    OFF = "off"


class CanaryConfig(Section):
    """How the canary is sent, and by when it has to arrive."""

    carrier: CanaryCarrier = Field(
        default=CanaryCarrier.HEARTBEATS,
        description="`heartbeats` needs no change in MirrorMaker 2, `topic` watches every task.",
    )
    topic: TopicName = Field(
        default="mm2slo.canary", description="Our own topic, for `carrier: topic`."
    )
    interval: Interval = Field(default=1.0, description="Time between two canaries.")
    deadline: Duration = Field(default=60.0, description="Arrival after this is unavailability.")
    latency_tiers: Annotated[tuple[Duration, ...], Field(min_length=1)] = Field(
        default=(10.0, 60.0),
        description="Thresholds of the latency SLI, ascending, up to `deadline`.",
    )

    @property
    def tiers(self) -> dict[str, float]:
        """Threshold in seconds by `tier` label, ascending: `{"10s": 10.0, "60s": 60.0}`."""
        return {duration_label(seconds): seconds for seconds in self.latency_tiers}
