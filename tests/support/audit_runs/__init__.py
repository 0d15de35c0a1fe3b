"""A run of the audit without Kafka and Spark: generated records, judged by the reference."""

from audit_runs.fakes import Clock, Heard, ReferenceEngine, Scopes, ports_for, started

__all__ = ["Clock", "Heard", "ReferenceEngine", "Scopes", "ports_for", "started"]
