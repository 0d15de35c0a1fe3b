"""Preview of an alert's Slack message.

promtool renders the annotations as Prometheus does, amtool the message templates as Alertmanager
does. These pure functions write their input and parse their output; the command line runs them.
"""

from mm2slo_alerts.preview.rendered_annotations import (
    RULES_FILE,
    TESTS_FILE,
    Fired,
    annotation_files,
    parse_fired,
)
from mm2slo_alerts.preview.rendered_message import message_data, message_parts, parse_message
from mm2slo_alerts.preview.sample_alerts import Sample, sample
from mm2slo_alerts.preview.slack_blocks import blocks

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
