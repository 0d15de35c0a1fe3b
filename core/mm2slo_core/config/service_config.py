"""`exporter:` and `report:`, the metrics exporter and the report service."""

import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, PlainValidator

from mm2slo_core.config.config_section import Section, SectionFinding
from mm2slo_core.config.exporter_settings import (
    ExporterSettings,
    Listen,
    LogSettings,
    StateSettings,
    TimelineSettings,
)
from mm2slo_core.config.field_types import (
    Address,
    Duration,
    FilePath,
    Flag,
    Patterns,
    SlowInterval,
    Text,
    TopicName,
    Whole,
)
from mm2slo_core.quantity_text import DurationBound, InvalidValueError

_LISTEN: Final = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+(?:%\w+)?)\]|(?P<host>[^\s:\[\]]*)):(?P<port>\d{1,5})", re.ASCII
)
_HIGHEST_PORT: Final = 65_535


def parse_listen(value: object) -> Listen:
    """`host:port`, `[ipv6]:port` or `:port`. Raises InvalidValueError (a ValueError)."""
    if isinstance(value, Listen):
        return value
    match = _LISTEN.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match["port"]) > _HIGHEST_PORT:
        raise InvalidValueError(
            "is not a listen address",
            expected="host:port with a port up to 65535, as in 127.0.0.1:9469 or :9469",
            next_step="write IPv6 addresses in brackets, as in [::1]:9469",
        )
    return Listen(match["ipv6"] or match["host"] or "", int(match["port"]))


ListenAddress = Annotated[
    Listen, PlainValidator(parse_listen), PlainSerializer(str, return_type=str)
]

# From MirrorMaker 2's default topics.exclude.
_NOT_REPLICATED: Final = re.compile(r"mm2.*\.internal")


def _check_topics(section: Section, *keys: str) -> Iterator[SectionFinding]:
    """MirrorMaker 2 does not replicate the exporter's topics."""
    for key in keys:
        topic = getattr(section, key)
        if not _NOT_REPLICATED.fullmatch(topic):
            usual = type(section).model_fields[key].default
            yield SectionFinding(
                (key,), f"{topic!r} would be replicated by MirrorMaker 2",
                f"a name such as {usual}, which the default topics.exclude matches",
            )  # fmt: skip


class StateConfig(Section, StateSettings):
    """State that survives restarts of the exporter, in a compacted topic on the target cluster."""

    topic: TopicName = "mm2slo.state.internal"
    """Topic; MirrorMaker 2 must not replicate it, so `mm2….internal`."""

    def check(self) -> Iterator[SectionFinding]:
        return _check_topics(self, "topic")


class TimelineConfig(Section, TimelineSettings):
    """The watermark timeline: end offsets over time, in a topic on the target cluster."""

    enabled: Flag = True
    """Whether to write the timeline."""
    topic: TopicName = "mm2slo.watermarks.internal"
    """Topic; MirrorMaker 2 must not replicate it, so `mm2….internal`."""
    retention: Annotated[float, PlainValidator(DurationBound(3_600.0))] = 35 * 86_400.0
    """Retention of the topic."""
    max_size: Annotated[Whole, Field(ge=100_000_000)] = 20_000_000_000
    """Bytes above which older records are removed before `retention`, on each replica of the topic;
    applied when the topic is created. A fifth is for `arrivals_topic`."""
    arrivals: Flag = True
    """Whether end offsets on targets are also read five times a second, so that audits report
    latency within 300 ms instead of `poll_interval`. Less often above 1,000 partitions of a target;
    not at all above 5,000."""
    arrivals_topic: TopicName = "mm2slo.arrivals.internal"
    """Topic of these reads, kept for 24 hours; MirrorMaker 2 must not replicate it, so
    `mm2….internal`."""

    def check(self) -> Iterator[SectionFinding]:
        return _check_topics(self, "topic", "arrivals_topic")


class LogConfig(Section, LogSettings):
    """Logging."""

    format: Literal["json", "text"] = "json"
    """JSON objects or plain text, one per line."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Minimum level."""


# Alerts read through gaps of a minute, and find a failing stage by two failures within 15 minutes
# (alert_thresholds: observed_age, failing_window).
_PollInterval = Annotated[float, BeforeValidator(DurationBound(0.1, at_most=60.0))]
_StageInterval = Annotated[float, BeforeValidator(DurationBound(0.1, at_most=420.0))]
_SlowStageInterval = Annotated[float, BeforeValidator(DurationBound(1.0, at_most=420.0))]


class ExporterConfig(Section, ExporterSettings):
    """The exporter: listen address, collection intervals, granularity."""

    listen: ListenAddress = Listen("127.0.0.1", 9469)
    """Listen address of `/metrics`; `:9469` for every interface, `[::1]:9469` for IPv6."""
    web_config_file: Text | None = None
    """Prometheus web configuration file: TLS and authentication."""
    instance: Text | None = None
    """Name of this exporter in its canaries, unique among replicas; null: the lowest number that no
    other replica holds, leased by a consumer group."""
    poll_interval: _PollInterval = 5.0
    """Interval between reads of end offsets."""
    start_offsets_interval: _StageInterval = 30.0
    """Interval between reads of log start offsets."""
    metadata_interval: _StageInterval = 30.0
    """Interval between reads of the ids of topics that have moved. Topics and partitions are listed
    every 4 seconds, or at this interval if it is shorter; above 2,000 topics less often, for at
    most 2 % of a core (`mm2_exporter_topics_interval_seconds`)."""
    groups_interval: _StageInterval = 15.0
    """Interval between reads of consumer groups."""
    topic_configs_interval: _SlowStageInterval = 300.0
    """Interval between reads of topic configurations."""
    granularity: Literal["flow", "topic", "partition"] = "topic"
    """The finest label of offset and lag series."""
    series_limit: Annotated[Whole, Field(ge=1)] = 200_000
    """Above this number of series, the next coarser granularity is used; above it at flow level,
    groups are left out, those that are ready to fail over first."""
    group_series: Patterns = (".*",)
    """Consumer groups with series of their own, as Java regular expressions."""
    group_lag: Flag = True
    """Publish the lag of consumer groups on both clusters. Costs a request for the members of each
    group on both clusters, every `group_members_interval`."""
    group_members_interval: SlowInterval = 300.0
    """Interval between reads of the members of a group; read at once when its state changes."""
    read_only: Flag = False
    """Write nothing to the clusters: no canaries, no state and no timeline; losses are then not
    counted, but published as pending."""
    replication_factor: Annotated[Whole, Field(ge=1)] | None = None
    """Replication factor of the topics that the exporter creates on targets; null: the broker
    default."""
    state: StateConfig = StateConfig()
    """Losses and verdicts that survive restarts, in a compacted topic on the target."""
    timeline: TimelineConfig = TimelineConfig()
    """The watermark timeline: end offsets over time, in a topic on the target."""
    log: LogConfig = LogConfig()
    """Logging of the exporter."""


_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}", re.ASCII)


def _zone(value: str) -> str:
    try:
        # ZoneInfo reads the name as a path of the time zone database.
        known = _ZONE.fullmatch(value) is not None and ZoneInfo(value).key == value
    except (OSError, LookupError, ValueError):
        known = False
    if not known:
        raise InvalidValueError(
            "is not a time zone",
            expected="an IANA time zone name, such as Europe/Berlin or UTC",
        )
    return value


Zone = Annotated[str, AfterValidator(_zone)]


class TlsFiles(Section):
    """A certificate and its key, in PEM format; a change applies to the next connection."""

    cert_file: FilePath
    """Certificate with its chain."""
    key_file: FilePath
    """Unencrypted key."""


class PrometheusConfig(Section):
    """A Prometheus that scrapes the exporters, as the source of history."""

    url: Address
    """Base URL."""
    token_file: FilePath | None = None
    """File with a bearer token; null: none."""
    ca_file: FilePath | None = None
    """CA certificates to trust; null: those of the system."""
    timeout: Duration = 10.0
    """Timeout of a request."""


class RecorderConfig(Section):
    """The embedded history, used without `report.prometheus`."""

    exporters: tuple[Address, ...] = ()
    """Base URLs of the exporters, replicas or exporters of different flows; empty: that of
    `exporter.listen`. Failover readiness is read from them as well."""
    token_file: FilePath | None = None
    """File with a bearer token for the exporters; null: none."""
    ca_file: FilePath | None = None
    """CA certificates to trust; null: those of the system."""
    interval: Annotated[float, BeforeValidator(DurationBound(1.0, at_most=60.0))] = 15.0
    """Scrape interval; a step of the history has five minutes."""


class ReportConfig(Section):
    """The report service: listen address, access, and source of history."""

    listen: ListenAddress = Listen("127.0.0.1", 9470)
    """Listen address of the API and the page."""
    tls: TlsFiles | None = Field(
        default=None,
        examples=[
            {"cert_file": "/etc/mm2slo/report.pem", "key_file": "/etc/mm2slo/report-key.pem"}
        ],
    )
    """Certificate and key; null: plain HTTP."""
    tokens_file: FilePath | None = None
    """File with one line `<SHA-256 of a token, hex> <read or write> <name>` per token, or
    `read:us->eu` for some flows only; null: everyone may read and no one may write, on loopback
    only. Changes take effect within a second."""
    hosts: tuple[Text, ...] = ()
    """Accepted host names, in addition to loopback names, that of `listen` and that of
    `alerting.links.report`."""
    zone: Zone = "UTC"
    """IANA time zone of days, months and quarters."""
    reports_per_minute: Annotated[Whole, Field(ge=1)] = 60
    """Limit of computed responses per client; cached responses do not count."""
    prometheus: PrometheusConfig | None = Field(
        default=None, examples=[{"url": "http://127.0.0.1:9090"}]
    )
    """The source of history; null: the embedded history."""
    recorder: RecorderConfig = RecorderConfig()
    """The embedded history."""
    log: LogConfig = LogConfig()
    """Logging of the service."""
