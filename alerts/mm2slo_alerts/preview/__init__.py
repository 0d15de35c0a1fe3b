"""What an alert's Slack message looks like, before it ever fires.

Nothing is imitated: promtool fills in the alert's annotations as Prometheus does, amtool executes
the message's templates as Alertmanager does. These pure functions write what the two are given
and read what they answer; the command line runs them.
"""

from mm2slo_alerts.preview.annotations import (
    RULES_FILE,
    TESTS_FILE,
    Fired,
    annotation_files,
    parse_fired,
)
from mm2slo_alerts.preview.blocks import blocks
from mm2slo_alerts.preview.message import message_data, message_parts, parse_message
from mm2slo_alerts.preview.samples import Sample, sample

__all__ = [
    "RULES_FILE",
    "TESTS_FILE",
    "Fired",
    "Sample",
    "annotation_files",
    "blocks",
    "message_data",
    "message_parts",
    "parse_fired",
    "parse_message",
    "sample",
]
