"""A run of the audit without Kafka and Spark: generated records, judged by the reference."""

from audit_runs.fake_ports import CONFIG, Clock, Heard, ReferenceEngine, Scopes, ports_for, started

__all__ = ["CONFIG", "Clock", "Heard", "ReferenceEngine", "Scopes", "ports_for", "started"]
