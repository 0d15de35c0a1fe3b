"""Label values in alert expressions are values that the exporter publishes."""

import re

from mm2slo_alerts import alert_files
from mm2slo_alerts.alert_rules import NO_LINKS, PRODUCTION
from mm2slo_alerts.alert_thresholds import DEFAULT_THRESHOLDS
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.records.connect_records import ConnectState
from mm2slo_exporter.collection_health import CollectionStage
from mm2slo_kafka.kafka_errors import ErrorKind

PUBLISHED = {
    "mm2_flow_state": {"state": {state.value for state in FlowStateName}},
    "mm2_connector_state": {"state": {state.value.lower() for state in ConnectState}},
    "mm2_task_state": {"state": {state.value.lower() for state in ConnectState}},
    "mm2_exporter_collect_errors_total": {
        "stage": {stage.value for stage in CollectionStage},
        "reason": {kind.value for kind in ErrorKind},
    },
    "mm2_exporter_last_success_timestamp_seconds": {
        "stage": {stage.value for stage in CollectionStage}
    },
}


def test_label_values_in_expressions_are_published() -> None:
    used = set()
    for group in alert_files.cause_groups(DEFAULT_THRESHOLDS, NO_LINKS, PRODUCTION):
        for rule in group.rules:
            for metric, matchers in re.findall(r"(mm2_\w+)\{([^}]*)\}", rule.expr):
                for label, values in re.findall(r'(\w+)!?=~?"([^"]*)"', matchers):
                    assert set(values.split("|")) <= PUBLISHED[metric][label]
                    used.add(metric)
    assert used == set(PUBLISHED)
