"""Metrics of the latest finished audit of each flow, published by the report service.

They cover the topics that the flow replicates. Values with bounds have the label `bound`:
`estimate`, `lower` or `upper`; an unknown bound has no series.
"""

from enum import StrEnum

from mm2slo_core.catalogue._metric_factories import MetricSubject


class Bound(StrEnum):
    """Value of the label `bound`."""

    ESTIMATE = "estimate"
    LOWER = "lower"
    UPPER = "upper"


class KeyProperty(StrEnum):
    """Value of the label `property`: what is violated for a key."""

    AFFINITY = "affinity"
    ORDER = "order"


class LatencyMeasure(StrEnum):
    """Value of the label `measure`: how latency is measured."""

    END_TO_END = "end-to-end"
    TRANSFER = "transfer"


AUDITS = MetricSubject("Audits")
AUDIT_RUNS = AUDITS.gauge(
    "mm2_audit_runs",
    "Audit runs in the results store, by state: running, finished or failed.",
    ("state",),
    per_flow=False,
)
AUDIT_LAST_RUN_TIMESTAMP_SECONDS = AUDITS.gauge(
    "mm2_audit_last_run_timestamp_seconds",
    "End time of the latest finished audit of the flow.",
    unit="seconds",
)
AUDIT_WINDOW_END_TIMESTAMP_SECONDS = AUDITS.gauge(
    "mm2_audit_window_end_timestamp_seconds",
    "End of the window of the latest finished audit of the flow.",
    unit="seconds",
)
AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS = AUDITS.gauge(
    "mm2_audit_complete_up_to_timestamp_seconds",
    "Time up to which the latest finished audit of the flow found all records complete.",
    unit="seconds",
)
AUDIT_RECORDS = AUDITS.gauge(
    "mm2_audit_records",
    "Records of the latest finished audit of the flow, by verdict.",
    ("verdict",),
    unit="records",
)
AUDIT_FAULTS_RECORDS = AUDITS.gauge(
    "mm2_audit_faults_records",
    "Faulty records of the latest finished audit of the flow: lost, overdue, expired, moved, "
    "altered or unmasked.",
    unit="records",
)
AUDIT_UNAUDITED_TOPICS = AUDITS.gauge(
    "mm2_audit_unaudited_topics",
    "Topics that the latest finished audit of the flow could not audit.",
)
AUDIT_SAMPLED_RATIO = AUDITS.gauge(
    "mm2_audit_sampled_ratio",
    "Share of records that the latest finished audit of the flow sampled; 1 is a census.",
    unit="ratio",
)
AUDIT_RECORD_SIZE_BYTES = AUDITS.gauge(
    "mm2_audit_record_size_bytes",
    "Mean size of the source records in the latest finished audit of the flow: key, value and "
    "headers, uncompressed, in topics without unauditable records.",
    unit="bytes",
)
AUDIT_RECORDS_RATIO = AUDITS.gauge(
    "mm2_audit_records_ratio",
    "Share of lost (with overdue), altered and moved records, and of replicated records with "
    "duplicates (including replays), in the latest finished audit of the flow: estimate, and 95 % "
    "bounds for all records (Clopper-Pearson; equal in a census). A sample counts altered records "
    "as lost.",
    ("verdict", "bound"),
    unit="ratio",
)
AUDIT_KEYS_RATIO = AUDITS.gauge(
    "mm2_audit_keys_ratio",
    "Share of keys whose affinity or order is violated, in the latest finished audit of the flow: "
    "estimate, and 95 % bounds for all keys (Clopper-Pearson; equal in a census; unknown for a "
    "sample of several topics, which may share keys).",
    ("property", "bound"),
    unit="ratio",
)
AUDIT_LATENCY_SECONDS = AUDITS.gauge(
    "mm2_audit_latency_seconds",
    "Latency percentiles of the latest finished audit of the flow, lower and upper bound: "
    "end-to-end (producer timestamp to arrival on the target; not for sources with LogAppendTime) "
    "and transfer (arrival to arrival), over the topics that no other flow replicates.",
    ("measure", "percentile", "bound"),
    unit="seconds",
)
AUDIT_EVIDENCE_RECORDS = AUDITS.gauge(
    "mm2_audit_evidence_records",
    "Anomalies with evidence in the latest finished audit of the flow, by verdict.",
    ("verdict",),
    unit="records",
)
AUDIT_UNEVIDENCED_RECORDS = AUDITS.gauge(
    "mm2_audit_unevidenced_records",
    "Anomalies without evidence in the latest finished audit of the flow, by verdict; evidence is "
    "limited per topic and verdict.",
    ("verdict",),
    unit="records",
)
