"""An audit run without Kafka and Spark: generated records, judged by the reference."""

from audit_runs.fake_ports import (
    CONFIG,
    Clock,
    GeneratedScopes,
    RecordedProgress,
    ReferenceEngine,
    fakes_of,
    ports_for,
)

__all__ = [
    "CONFIG",
    "Clock",
    "GeneratedScopes",
    "RecordedProgress",
    "ReferenceEngine",
    "fakes_of",
    "ports_for",
]
