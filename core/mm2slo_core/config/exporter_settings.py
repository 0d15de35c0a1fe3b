"""What the exporter knows of mm2slo.yaml: plain values of the models of the configuration.

Nothing here needs pydantic: the models and their validators are 10 MB of a process, which the
exporter would keep while it runs. Another process validates and sends `Settings`, which have the
attributes of their models and the methods that both need. A model inherits from its settings.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Literal, NoReturn, Self

from mm2slo_core.config.secret import Secret
from mm2slo_core.offset_translation import keeps_offset_syncs
from mm2slo_core.quantity_text import duration_label
from mm2slo_core.replication_policy import OffsetSyncsLocation
from mm2slo_core.topic_filters import GroupFilter
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError


class Settings:
    """An immutable value with the attributes of a section of mm2slo.yaml.

    Attributes are declared for type checkers only: pydantic takes the annotations of a base class
    for fields.
    """

    @classmethod
    def of(cls, attributes: Mapping[str, object]) -> Self:
        made = cls.__new__(cls)
        vars(made).update(attributes)
        return made

    def changed(self, attributes: Mapping[str, object]) -> Self:
        """A copy with other values of some attributes."""
        made = copy.copy(self)
        vars(made).update(attributes)
        return made

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} is read-only")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]  # as of a model with mappings


class Engine(StrEnum):
    """The replication engine; only MirrorMaker 2 writes internal topics."""

    MIRRORMAKER2 = "mirrormaker2"
    DUAL_PRODUCE = "dual-produce"
    OTHER = "other"


class PolicyKind(StrEnum):
    """How source topic names map to target topic names."""

    DEFAULT = "default"
    IDENTITY = "identity"


class Isolation(StrEnum):
    """Kafka's `isolation.level` of MirrorMaker 2's source consumer."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class SettingsSource(StrEnum):
    """Where settings of MirrorMaker 2 come from."""

    OBSERVED = "observed"
    CONFIGURED = "configured"


class CanaryCarrier(StrEnum):
    """The topic that carries the canary."""

    HEARTBEATS = "heartbeats"
    TOPIC = "topic"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Listen:
    """A listen address. An empty host is every interface; port 0 is chosen by the system."""

    host: str
    port: int

    @property
    def is_ipv6(self) -> bool:
        return ":" in self.host

    @property
    def local(self) -> Listen:
        """The address at which clients on this machine reach it."""
        everywhere = self.host in {"", "0.0.0.0", "::"}  # noqa: S104 - compared, not bound
        return replace(self, host="127.0.0.1") if everywhere else self

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if self.is_ipv6 else f"{self.host}:{self.port}"


class PolicySettings(Settings):
    if TYPE_CHECKING:
        kind: PolicyKind
        separator: str
        internal_separator: bool


class ConnectSettings(Settings):
    if TYPE_CHECKING:
        offsets_topic: str | None
        status_topic: str | None
        configs_topic: str | None
        source_connector: str
        checkpoint_connector: str
        heartbeat_connector: str


class FreshnessSettings(Settings):
    if TYPE_CHECKING:
        name: str
        topics: tuple[str, ...]
        threshold: float


class ReadinessSettings(Settings):
    if TYPE_CHECKING:
        max_redelivery_records: int
        max_checkpoint_lag_records: int


class CanarySettings(Settings):
    if TYPE_CHECKING:
        carrier: CanaryCarrier
        topic: str
        interval: float
        deadline: float
        latency_tiers: tuple[float, ...]

    @property
    def tiers(self) -> dict[str, float]:
        """Threshold in seconds by `tier` label, ascending: `{"10s": 10.0, "60s": 60.0}`."""
        return {duration_label(seconds): seconds for seconds in self.latency_tiers}


class FlowSettings(Settings):
    if TYPE_CHECKING:
        flow: Flow
        engine: Engine
        kafka_version: str | None
        settings: SettingsSource
        topics: tuple[str, ...]
        topics_exclude: tuple[str, ...]
        groups: tuple[str, ...]
        groups_exclude: tuple[str, ...]
        policy: PolicySettings
        offset_syncs_location: OffsetSyncsLocation
        isolation: Isolation
        exactly_once: bool
        offset_flush_interval: float
        checkpoint_interval: float
        offset_lag_max: int
        heartbeat_interval: float
        emit_heartbeats: bool
        transforms: Mapping[str, str]
        config_properties_exclude: tuple[str, ...]
        connect: ConnectSettings
        canary: CanarySettings
        freshness: tuple[FreshnessSettings, ...]
        slice: float
        stall_after: float
        readiness: ReadinessSettings

    @property
    def by_mirrormaker(self) -> bool:
        """Whether the engine writes MirrorMaker 2's internal topics and heartbeats."""
        return self.engine is Engine.MIRRORMAKER2

    @property
    def keeps_offset_syncs(self) -> bool:
        """Whether MirrorMaker 2 uses older offset syncs after a restart."""
        return self.kafka_version is None or keeps_offset_syncs(self.kafka_version)

    @property
    def label(self) -> str:
        """The value of the `flow` label, as in `us->eu`."""
        return self.flow.label


class ClusterSettings(Settings):
    if TYPE_CHECKING:
        connection: Mapping[str, Secret]

    def librdkafka_properties(self) -> dict[str, str]:
        """The connection properties of a librdkafka client, with secrets in plain text."""
        return {name: value.reveal() for name, value in self.connection.items()}


class StateSettings(Settings):
    if TYPE_CHECKING:
        topic: str


class TimelineSettings(Settings):
    if TYPE_CHECKING:
        enabled: bool
        topic: str
        retention: float
        max_size: int
        arrivals: bool
        arrivals_topic: str


class LogSettings(Settings):
    if TYPE_CHECKING:
        format: Literal["json", "text"]
        level: Literal["debug", "info", "warning", "error"]


class ExporterSettings(Settings):
    if TYPE_CHECKING:
        listen: Listen
        web_config_file: str | None
        instance: str | None
        poll_interval: float
        start_offsets_interval: float
        metadata_interval: float
        groups_interval: float
        topic_configs_interval: float
        granularity: Literal["flow", "topic", "partition"]
        series_limit: int
        group_series: tuple[str, ...]
        group_lag: bool
        group_members_interval: float
        read_only: bool
        replication_factor: int | None
        state: StateSettings
        timeline: TimelineSettings
        log: LogSettings

    @property
    def writes_timeline(self) -> bool:
        return self.timeline.enabled and not self.read_only

    @property
    def writes_arrivals(self) -> bool:
        return self.writes_timeline and self.timeline.arrivals

    def shows_group(self, group: str) -> bool:
        """Whether *group* has series of its own, unless the series limit leaves it out."""
        return _group_filter(self.group_series).matches(group)

    def carrier(self, canary: CanarySettings) -> CanaryCarrier:
        """The effective carrier of a flow's *canary*: off in read-only mode."""
        return CanaryCarrier.OFF if self.read_only else canary.carrier


@cache
def _group_filter(patterns: tuple[str, ...]) -> GroupFilter:
    return GroupFilter(patterns, ())


class RootSettings(Settings):
    if TYPE_CHECKING:
        clusters: Mapping[str, ClusterSettings]
        flows: tuple[FlowSettings, ...]
        exporter: ExporterSettings

    def select(self, labels: Iterable[str]) -> tuple[FlowSettings, ...]:
        """The flows with *labels*, in file order; all flows if *labels* is empty.

        Raises UserError for the label of an unknown flow.
        """
        known = {flow.label: flow for flow in self.flows}
        wanted = [_known_label(label, known) for label in labels]
        return tuple(flow for flow in self.flows if not wanted or flow.label in wanted)

    def carrier(self, flow: FlowSettings) -> CanaryCarrier:
        """The effective canary carrier of *flow*: off in read-only mode."""
        return self.exporter.carrier(flow.canary)


def _known_label(text: str, known: Mapping[str, FlowSettings]) -> str:
    try:
        label = Flow.parse(text).label
    except ValueError:
        label = text.strip()
    if label in known:
        return label
    from mm2slo_core.config.config_document import suggest  # and PyYAML

    close = suggest(label, known)
    hint = f"; did you mean {close!r}?" if close else ""
    raise UserError(
        f"{text!r} is not a configured flow: expected one of {', '.join(sorted(known))}{hint}"
    )
