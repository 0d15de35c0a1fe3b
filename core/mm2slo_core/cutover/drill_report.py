"""What a drill measured: what a failover would have lost, and how long each group did not work.

Recovery point: of the records that the source has acknowledged, which are not on the target? The
ledger knows them, which is outside of both clusters. Recovery time: from the fault until a consumer
on the target has nothing left to read. Times are epoch seconds, None means that it did not happen
or is not known; an objective that cannot be judged is not met, it is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from mm2slo_core.table_document import DocumentTable, html_document, markdown_document


class DrillVerdict(StrEnum):
    MET = "met"
    NOT_MET = "not met"
    UNKNOWN = "unknown"
    NOT_STATED = "not stated"
    """There is no objective."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Acknowledged records that are not on the target."""

    records: int
    seconds: float
    """From the acknowledgement of the oldest missing record to the fault, or to the last one if the
    source went on for a while."""
    acknowledged: int
    """All of the ledger."""


def find_loss(ledger: Mapping[bytes, float], present: Iterable[bytes], fault_at: float) -> Loss:
    """*ledger*: times of acknowledgement by record; *present*: the records on the target."""
    missing = ledger.keys() - set(present)
    if not missing:
        return Loss(0, 0.0, len(ledger))
    ended_at = max(fault_at, *ledger.values())
    return Loss(len(missing), ended_at - min(map(ledger.__getitem__, missing)), len(ledger))


@dataclass(frozen=True, slots=True)
class PredictedLoss:
    """The recovery point of all topics of the flow, which mm2slo published at the decision."""

    records: int | None
    seconds: float | None
    """At `read_at`, when the source was last read; it may have grown since."""
    read_at: float


@dataclass(slots=True)
class GroupRecovery:
    """A consumer on the target in the place of one group of the source."""

    group: str
    predicted_least: int | None = None
    """Bounds of the redelivery, at the decision."""
    predicted_most: int | None = None
    reread: int | None = None
    """Records that the group had read on the source; None for a group that is not the drill's."""
    skipped: int | None = None
    """Records on the target that neither has read."""
    read: int = 0
    assigned_at: float | None = None
    resumed_at: float | None = None
    """The first record beyond the predicted redelivery; without one, when nothing is left."""
    normal_at: float | None = None
    """Nothing is left of what was on the target when the group moved."""
    problem: str = ""


@dataclass(slots=True)
class DrillReport:
    """The evidence of a drill, complete up to its newest stage."""

    flow: str
    performed_by: str
    place: str
    fault: str
    config_sha256: str
    version: str
    started_at: float
    poll_seconds: float
    decision_seconds: float
    """Stated: how long people or a script take to decide."""
    rpo_objective: float | None = None
    rto_objective: float | None = None
    injected: bool = True
    """Whether there is a fault; without one only the consumers are tried, and nothing is judged."""
    state: str = "running"
    fault_at: float | None = None
    detected_at: float | None = None
    detected_by: str = ""
    decided_at: float | None = None
    predicted_loss: PredictedLoss | None = None
    loss: Loss | None = None
    groups: list[GroupRecovery] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def recovery_point_seconds(self) -> float | None:
        """The larger of the ledger's figure, and mm2slo's for all topics, if both are known."""
        if not self.injected or self.loss is None or not self.loss.acknowledged:
            return None
        predicted = self.predicted_loss.seconds if self.predicted_loss else None
        return None if predicted is None else max(self.loss.seconds, predicted)

    @property
    def rpo_verdict(self) -> DrillVerdict:
        return _judge(self.recovery_point_seconds, self.rpo_objective)

    @property
    def recovery_seconds(self) -> float | None:
        """Until the slowest group works again; None if one has a problem: it may not for real."""
        ends = [None if each.problem else each.normal_at for each in self.groups]
        known = [each for each in ends if each is not None]
        if not self.injected or self.fault_at is None or not known or len(known) < len(ends):
            return None
        return max(known) - self.fault_at

    @property
    def rto_verdict(self) -> DrillVerdict:
        return _judge(self.recovery_seconds, self.rto_objective)


def _judge(value: float | None, objective: float | None) -> DrillVerdict:
    if objective is None:
        return DrillVerdict.NOT_STATED
    if value is None:
        return DrillVerdict.UNKNOWN
    return DrillVerdict.MET if value <= objective else DrillVerdict.NOT_MET


def drill_json(report: DrillReport) -> str:
    """The report for programs, times in epoch seconds."""
    document = asdict(report) | {
        "recovery_point_seconds": report.recovery_point_seconds,
        "recovery_seconds": report.recovery_seconds,
        "rpo_verdict": report.rpo_verdict,
        "rto_verdict": report.rto_verdict,
    }
    return json.dumps(document, indent=2) + "\n"


def drill_markdown(report: DrillReport) -> str:
    """The report for terminals and tickets."""
    return markdown_document(_title(report), _tables(report), report.notes)


def drill_html(report: DrillReport) -> str:
    """The report as a page without other files."""
    return html_document(_title(report), _tables(report), report.notes)


def _title(report: DrillReport) -> str:
    return f"Failover drill of {report.flow}: {report.state}"


def _tables(report: DrillReport) -> Iterator[DocumentTable]:
    yield DocumentTable(
        "Drill",
        ("what", "value"),
        (
            ("performed by", report.performed_by),
            ("place", report.place),
            ("started", instant(report.started_at)),
            ("fault", report.fault),
            ("configuration (SHA-256)", report.config_sha256),
            ("mm2slo", report.version),
        ),
    )
    loss, predicted = report.loss, report.predicted_loss
    yield DocumentTable(
        "Objectives",
        ("objective", "stated", "measured", "verdict"),
        (
            (
                "recovery point (RPO)",
                _seconds(report.rpo_objective),
                _seconds(report.recovery_point_seconds),
                report.rpo_verdict,
            ),
            (
                "recovery time (RTO)",
                _seconds(report.rto_objective),
                _seconds(report.recovery_seconds),
                report.rto_verdict,
            ),
        ),
    )
    yield DocumentTable(
        "Recovery point",
        ("source", "records", "seconds"),
        (
            (
                "ledger: acknowledged and not on the target",
                f"{loss.records:,} of {loss.acknowledged:,}" if loss else "unknown",
                _seconds(loss.seconds if loss else None),
            ),
            (
                "mm2slo at the decision, all topics of the flow",
                _count(predicted.records if predicted else None),
                _seconds(predicted.seconds if predicted else None),
            ),
        ),
    )
    yield DocumentTable(
        "Recovery time, since the fault",
        ("group", *_STAGES),
        [
            (each.group, *(_since(report, at) for at in _times(report, each)))
            for each in report.groups
        ],
    )
    yield DocumentTable(
        "Records by group",
        ("group", "predicted redelivery", "read again", "skipped", "read", "problem"),
        [
            (
                each.group,
                f"{_count(each.predicted_least)} to {_count(each.predicted_most)}",
                _count(each.reread),
                _count(each.skipped),
                f"{each.read:,}",
                each.problem or "none",
            )
            for each in report.groups
        ],
    )


_STAGES = ("detected", "decided", "assigned", "resumed", "normal")


def _times(report: DrillReport, group: GroupRecovery) -> tuple[float | None, ...]:
    return (
        report.detected_at,
        report.decided_at,
        group.assigned_at,
        group.resumed_at,
        group.normal_at,
    )


def _since(report: DrillReport, at: float | None) -> str:
    return _seconds(None if at is None or report.fault_at is None else at - report.fault_at)


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f} s"


def _count(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def instant(at: float) -> str:
    """*at* (epoch seconds) in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
