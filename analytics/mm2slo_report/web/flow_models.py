"""Flows and failover readiness as typed responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field

from mm2slo_core.objectives.slo_status import Status
from mm2slo_core.reporting.entry_order import count_by_status, headline
from mm2slo_report.rendering.entry_models import Entry, FlowNames
from mm2slo_report.rendering.report_models import Headline
from mm2slo_report.rendering.response_model import Count, Figure, Instant, ResponseModel

if TYPE_CHECKING:
    from collections.abc import Collection

    from mm2slo_core.reporting import report_entry
    from mm2slo_core.topology import Flow
    from mm2slo_report.audit_figures import AuditFigures
    from mm2slo_report.rendering.page_views import FlowView, GroupView, ThroughputView


class FlowSummary(ResponseModel):
    name: str
    slug: str
    source: str
    target: str
    status: Annotated[Status, Field(description="The worst of its objectives.")]
    headline: Headline
    objectives: Annotated[tuple[str, ...], Field(description="Ids.")]

    @classmethod
    def of(cls, flow: Flow, entries: Collection[report_entry.Entry]) -> Self:
        counts = count_by_status(entries)
        return cls.model_validate(
            {
                **FlowNames.model_validate(flow).model_dump(),
                "status": next((each for each in counts if counts[each]), Status.NO_DATA),
                "headline": headline(entries),
                "objectives": [each.id for each in entries],
            }
        )


class FlowList(ResponseModel):
    as_of: Instant
    flows: tuple[FlowSummary, ...]


class Throughput(ResponseModel):
    """Between two readings of the exporter, which are a minute apart or more."""

    between_readings_seconds: Figure
    source_records_per_second: Figure
    replicated_records_per_second: Figure
    source_bytes_per_second: Annotated[
        Figure, Field(description="Uncompressed: records per second times the record size.")
    ]
    replicated_bytes_per_second: Figure
    record_size_bytes: Annotated[
        Figure,
        Field(description="Mean size of key, value and headers in the flow's newest audit."),
    ]
    record_size_age_seconds: Annotated[
        Figure, Field(description="Time since the end of the audited window.")
    ]

    @classmethod
    def of(cls, view: ThroughputView, audit: AuditFigures | None, now: int) -> Self:
        size = None if audit is None else audit.record_size
        age = None if audit is None else (now - audit.run.header.window.end) / 1000

        def in_bytes(records: float | None) -> float | None:
            return None if records is None or size is None else records * size

        return cls(
            between_readings_seconds=view.seconds,
            source_records_per_second=view.source,
            replicated_records_per_second=view.replicated,
            source_bytes_per_second=in_bytes(view.source),
            replicated_bytes_per_second=in_bytes(view.replicated),
            record_size_bytes=size,
            record_size_age_seconds=None if size is None else age,
        )


class CurrentState(ResponseModel):
    """As last reported by the exporter."""

    state: str | None
    lag_records: Count
    lag_seconds: Figure
    headroom_seconds: Annotated[
        Figure, Field(description="Time until retention removes unreplicated records.")
    ]
    throughput: Annotated[Throughput | None, Field(description="Null before a second reading.")]

    @classmethod
    def of(cls, view: FlowView, throughput: Throughput | None) -> Self:
        return cls.model_validate(
            {
                "state": view.state,
                "lag_records": view.lag_records,
                "lag_seconds": view.lag_seconds,
                "headroom_seconds": view.headroom_seconds,
                "throughput": throughput,
            }
        )


class FlowDetail(ResponseModel):
    as_of: Instant
    source: str
    flow: FlowSummary
    now: Annotated[CurrentState | None, Field(description="Null if no exporter reports it.")]
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]


class Unreplicated(ResponseModel):
    """What would be missing on the target if the source never came back."""

    records: Annotated[Count, Field(validation_alias="unreplicated_records")]
    seconds: Annotated[Figure, Field(validation_alias="unreplicated_seconds")]


class UnreplicatedSince(Unreplicated):
    age_seconds: Annotated[Figure, Field(validation_alias="unreplicated_age")]


class RecordBounds(ResponseModel):
    lower: Annotated[Count, Field(validation_alias="redelivery_lower")]
    upper: Annotated[Count, Field(validation_alias="redelivery_upper")]


class SkippedBounds(ResponseModel):
    """Records that the group would never read; null if it would skip none."""

    lower: Annotated[Count, Field(validation_alias="skipped_lower")]
    upper: Annotated[Count, Field(validation_alias="skipped_upper")]


class RecordLag(ResponseModel):
    records: Count
    seconds: Annotated[Figure, Field(description="Age of the oldest record.")]


class GroupLag(ResponseModel):
    source: Annotated[RecordLag, Field(validation_alias="source_lag")]
    target: Annotated[RecordLag, Field(validation_alias="target_lag")]


class GroupReadiness(ResponseModel):
    """Of a consumer group, if it failed over now."""

    group: str
    ready: bool | None
    reasons: tuple[str, ...]
    checkpoint_lag_records: Count
    redelivery_records: RecordBounds
    skipped_records: SkippedBounds
    commits_age_seconds: Figure
    unreplicated: Unreplicated
    lag: GroupLag

    @classmethod
    def of(cls, view: GroupView) -> Self:
        return cls.model_validate(
            {
                "group": view.group,
                "ready": view.ready,
                "reasons": view.reasons,
                "checkpoint_lag_records": view.checkpoint_lag,
                "redelivery_records": view,
                "skipped_records": view,
                "commits_age_seconds": view.commits_age,
                "unreplicated": view,
                "lag": view,
            }
        )


class Readiness(ResponseModel):
    """Groups that are not ready come first."""

    flow: str
    slug: str
    as_of: Instant
    groups: int
    ready: int
    unreplicated: UnreplicatedSince
    readiness: tuple[GroupReadiness, ...]
