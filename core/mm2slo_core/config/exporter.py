"""`exporter:`, the service that publishes the figures."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, PlainSerializer, PlainValidator

from mm2slo_core.config.canary import CanaryCarrier, CanaryConfig
from mm2slo_core.config.durations import DurationBound, Interval, SlowInterval
from mm2slo_core.config.fields import Flag, Section, Text, TopicName, Whole
from mm2slo_core.config.refusal import Refusal

_LISTEN: Final = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+(?:%\w+)?)\]|(?P<host>[^\s:\[\]]*)):(?P<port>\d{1,5})", re.ASCII
)
_HIGHEST_PORT: Final = 65_535


class Granularity(StrEnum):
    """The finest label that the offset and lag series carry."""

    FLOW = "flow"
    TOPIC = "topic"
    PARTITION = "partition"


class LogFormat(StrEnum):
    """How a log line is written."""

    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    """The least level that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen. An empty host is every interface; port 0 lets the system choose."""

    host: str
    port: int

    @property
    def is_ipv6(self) -> bool:
        """Whether the host is an IPv6 address."""
        return ":" in self.host

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if self.is_ipv6 else f"{self.host}:{self.port}"


def parse_listen(value: object) -> Listen:
    """`host:port`, `[ipv6]:port` or `:port`. Raises Refusal (a ValueError)."""
    if isinstance(value, Listen):
        return value
    match = _LISTEN.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match["port"]) > _HIGHEST_PORT:
        raise Refusal(
            "is not an address to listen on",
            expected="host:port with a port up to 65535, as in 127.0.0.1:9469 or :9469",
            next_step="an IPv6 address stands in brackets, as in [::1]:9469",
        )
    return Listen(match["ipv6"] or match["host"] or "", int(match["port"]))


class TimelineConfig(Section):
    """The watermark timeline: when did each offset arrive, kept on the target cluster."""

    enabled: Flag = Field(default=True, description="Whether to write the timeline.")
    topic: TopicName = Field(
        default="mm2slo.watermarks.internal",
        description="Its topic; MirrorMaker 2 must not copy it, so `mm2….internal`.",
    )
    retention: Annotated[float, PlainValidator(DurationBound(3_600.0))] = Field(
        default=35 * 86_400.0, description="How long it is kept."
    )
    replication_factor: Annotated[Whole, Field(ge=1)] | None = Field(
        default=None, description="Of the topic; the broker's default when null."
    )


class LogConfig(Section):
    """A program's own log."""

    format: LogFormat = Field(
        default=LogFormat.JSON, description="One JSON object or one text per line."
    )
    level: LogLevel = Field(default=LogLevel.INFO, description="The least level that is written.")


class ExporterConfig(Section):
    """The exporter: where it listens, how often it asks, how much it publishes."""

    listen: Annotated[
        Listen, PlainValidator(parse_listen), PlainSerializer(str, return_type=str)
    ] = Field(default=Listen("127.0.0.1", 9469), description="Address of `/metrics`.")
    web_config_file: Text | None = Field(
        default=None, description="Prometheus web configuration file: TLS and authentication."
    )
    instance: Text | None = Field(
        default=None,
        description="Name of this exporter in its canaries; the host's name when null.",
    )
    poll_interval: Interval = Field(
        default=5.0, description="Time between two reads of the end offsets."
    )
    start_offsets_interval: Interval = Field(
        default=30.0, description="The same for the log starts."
    )
    metadata_interval: Interval = Field(
        default=30.0, description="The same for topics and partitions."
    )
    groups_interval: Interval = Field(default=15.0, description="The same for consumer groups.")
    topic_configs_interval: SlowInterval = Field(
        default=300.0, description="The same for topic configurations."
    )
    granularity: Granularity = Field(
        default=Granularity.TOPIC, description="The finest label of offset and lag series."
    )
    series_limit: Annotated[Whole, Field(ge=1)] = Field(
        default=200_000,
        description="More series than this fall back to the next coarser granularity.",
    )
    read_only: Flag = Field(
        default=False, description="Write nothing to the clusters: no canary, no timeline."
    )
    timeline: TimelineConfig = Field(
        default_factory=TimelineConfig, description="When did each offset arrive."
    )
    log: LogConfig = Field(default_factory=LogConfig, description="The exporter's own log.")

    @property
    def writes_timeline(self) -> bool:
        """Whether the timeline is written: enabled, and writing is allowed at all."""
        return self.timeline.enabled and not self.read_only

    def carrier(self, canary: CanaryConfig) -> CanaryCarrier:
        """The carrier that a flow's *canary* really has: none where nothing may be written."""
        return CanaryCarrier.OFF if self.read_only else canary.carrier
