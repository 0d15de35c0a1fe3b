"""What the report service publishes of audits: of each flow's newest finished one.

A flow's figures are those of the topics that it feeds. A figure with a bound has the label `bound`:
`estimate`, `lower` or `upper`; one that is not known has no series.
"""

from enum import StrEnum
from typing import Final

from mm2slo_core.catalogue._declare import gauge


class Bound(StrEnum):
    """Which figure a series of one that is known between bounds is."""

    ESTIMATE = "estimate"
    LOWER = "lower"
    UPPER = "upper"


class Broken(StrEnum):
    """What a key may have lost."""

    AFFINITY = "affinity"
    ORDER = "order"


class Stretch(StrEnum):
    """From where to where a latency is measured."""

    END_TO_END = "end-to-end"
    TRANSFER = "transfer"


AUDIT_RUNS = gauge(
    "mm2_audit_runs",
    "Audit runs in the results store, by state: running, finished or failed.",
    ("state",),
    per_flow=False,
)
AUDIT_LAST_RUN_TIMESTAMP_SECONDS = gauge(
    "mm2_audit_last_run_timestamp_seconds",
    "Time at which the flow's newest finished audit ended.",
    unit="seconds",
)
AUDIT_WINDOW_END_TIMESTAMP_SECONDS = gauge(
    "mm2_audit_window_end_timestamp_seconds",
    "End of the window that the flow's newest finished audit judged.",
    unit="seconds",
)
AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS = gauge(
    "mm2_audit_complete_up_to_timestamp_seconds",
    "Time up to which the flow's newest finished audit found everything complete.",
    unit="seconds",
)
AUDIT_RECORDS = gauge(
    "mm2_audit_records",
    "Records that the flow's newest finished audit judged, by verdict.",
    ("verdict",),
    unit="records",
)
AUDIT_FAULTS_RECORDS = gauge(
    "mm2_audit_faults_records",
    "Records that the flow's newest finished audit found at fault: lost, overdue, expired, moved "
    "or altered.",
    unit="records",
)
AUDIT_UNAUDITED_TOPICS = gauge(
    "mm2_audit_unaudited_topics",
    "Topics that the flow's newest finished audit could not judge.",
)
AUDIT_SAMPLED_RATIO = gauge(
    "mm2_audit_sampled_ratio",
    "Share of the records that the flow's newest finished audit looked at; 1 is a census.",
    unit="ratio",
)
AUDIT_RECORDS_RATIO = gauge(
    "mm2_audit_records_ratio",
    "Share of the records that the flow's newest finished audit found lost, altered or moved, and "
    "of copied ones that are duplicate (replays as well): as counted, and 95 % bounds for all "
    "records (Clopper-Pearson; equal in a census). Altered in a census alone: in a sample it "
    "counts as lost.",
    ("verdict", "bound"),
    unit="ratio",
)
AUDIT_KEYS_RATIO = gauge(
    "mm2_audit_keys_ratio",
    "Share of the keys that the flow's newest finished audit found with broken affinity or order: "
    "as counted, and 95 % bounds for all keys (Clopper-Pearson; equal in a census; not known of a "
    "sample of several topics, which may share keys).",
    ("broken", "bound"),
    unit="ratio",
)
AUDIT_LATENCY_SECONDS = gauge(
    "mm2_audit_latency_seconds",
    "Percentiles of latency in the flow's newest finished audit, lower and upper bound: end-to-end "
    "(producer's timestamp to arrival on the target; not of sources with LogAppendTime) and "
    "transfer (arrival to arrival), over the topics that no other flow feeds.",
    ("stretch", "percentile", "bound"),
    unit="seconds",
)
AUDIT_EVIDENCE_RECORDS = gauge(
    "mm2_audit_evidence_records",
    "Anomalies of the flow's newest finished audit of which evidence is kept, by verdict.",
    ("verdict",),
    unit="records",
)
AUDIT_UNEVIDENCED_RECORDS = gauge(
    "mm2_audit_unevidenced_records",
    "Anomalies of the flow's newest finished audit that are counted without evidence, by verdict: "
    "evidence is kept of so many per topic and verdict.",
    ("verdict",),
    unit="records",
)

AUDITED: Final = (
    AUDIT_RUNS,
    AUDIT_LAST_RUN_TIMESTAMP_SECONDS,
    AUDIT_WINDOW_END_TIMESTAMP_SECONDS,
    AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS,
    AUDIT_RECORDS,
    AUDIT_FAULTS_RECORDS,
    AUDIT_UNAUDITED_TOPICS,
    AUDIT_SAMPLED_RATIO,
    AUDIT_RECORDS_RATIO,
    AUDIT_KEYS_RATIO,
    AUDIT_LATENCY_SECONDS,
    AUDIT_EVIDENCE_RECORDS,
    AUDIT_UNEVIDENCED_RECORDS,
)
"""In the order of the documentation."""
