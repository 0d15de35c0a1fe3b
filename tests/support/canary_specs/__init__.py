"""The settings of one flow for the canary process."""

from typing import Any

from mm2slo_exporter.canary.canary_messages import CanarySpec


def spec(**changes: Any) -> CanarySpec:
    fields: dict[str, Any] = {
        "flow": "us->eu",
        "instance": "here",
        "source_alias": "us",
        "target_alias": "eu",
        "source_client": {"sasl.password": "s3cret"},
        "target_client": {"sasl.password": "s3cret"},
        "heartbeats_topic_on_target": "us.heartbeats",
        "carrier": "topic",
        "source_topic": "mm2slo.canary",
        "target_topic": "us.mm2slo.canary",
        "interval_seconds": 1.0,
        "restore_seconds": 3600.0,
    }
    return CanarySpec(**fields | changes)
