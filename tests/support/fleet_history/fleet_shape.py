"""The size of the fleet and the values of its labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mm2slo_core.audit.unit_outcome import PERCENTILES, Verdict, percentile_name
from mm2slo_core.catalogue.flow_metrics import (
    CHECKPOINT_LAG_RECORDS,
    CONNECTOR_STATE,
    FAILOVER_BLOCKED,
    FLOW_STATE,
    GROUP_LAG_RECORDS,
    GROUP_LAG_SECONDS,
    TASK_STATE,
)
from mm2slo_core.catalogue.metric import FLOW_LABELS, Granularity
from mm2slo_core.catalogue.service_metrics import (
    AUDIT_KEYS_RATIO,
    AUDIT_RECORDS_RATIO,
    EXPORTER_COLLECT_ERRORS_TOTAL,
    EXPORTER_MALFORMED_RECORDS_TOTAL,
    Bound,
    KeyProperty,
    LatencyMeasure,
)
from mm2slo_core.config.config_model import default_objective_rules
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.indicators.group_readiness import BlockReason
from mm2slo_core.offset_translation import PositionQuality
from mm2slo_core.records.connect_records import ConnectState
from mm2slo_exporter.collection_health import CollectionStage
from mm2slo_exporter.readers.internals_store import InternalTopic

TARGETS: Final = 10
_CONNECT: Final = tuple(state.value.lower() for state in ConnectState)
_VALUES: Final = {
    "policy": ("default",),
    "separator": (".",),
    "engine": ("connect",),
    "canary": ("heartbeats",),
    "heartbeats": ("on",),
    "carrier": ("heartbeats",),
    "target_topic": ("copy",),
    "quality": tuple(each.value for each in PositionQuality)[:3],
    "limit": ("time", "size"),
    "config": ("retention.ms", "max.message.bytes"),
    "side": ("source", "target"),
    "bound": ("lower", "upper"),
    "connector": ("MirrorSourceConnector", "MirrorCheckpointConnector"),
    # About as many as one cluster has: no cluster is both source and target of everything.
    "stage": tuple(each.value for each in CollectionStage)[:9],
    "reason": ("timed_out", "not_authorised"),
    "api": ("list_offsets", "metadata", "find_coordinator", "offset_fetch", "describe_configs"),
    "kind": tuple(each.value for each in InternalTopic),
    "granularity": tuple(each.label for each in Granularity),
    "verdict": tuple(each.value for each in Verdict),
    "property": tuple(each.value for each in KeyProperty),
    "measure": tuple(each.value for each in LatencyMeasure),
    "percentile": tuple(map(percentile_name, PERCENTILES)),
    "exporter": ("a:9469", "b:9469"),
    "integration": ("slack", "webhook"),
    "rule_group": tuple(
        f"/etc/prometheus/mm2slo.rules.yml;mm2slo-{name}"
        for name in ("events", "steps", "window", "burn", "flows", "pipeline")
    ),
}
_METRIC_VALUES: Final = {
    (FLOW_STATE.name, "state"): tuple(each.value for each in FlowStateName),
    (CONNECTOR_STATE.name, "state"): _CONNECT,
    (TASK_STATE.name, "state"): _CONNECT,
    **{
        (metric.name, "bound"): tuple(each.value for each in Bound)
        for metric in (AUDIT_RECORDS_RATIO, AUDIT_KEYS_RATIO)
    },
    ("mm2_audit_runs", "state"): ("running", "finished", "failed"),
    (FAILOVER_BLOCKED.name, "reason"): tuple(each.value for each in BlockReason),
    (EXPORTER_COLLECT_ERRORS_TOTAL.name, "reason"): ("timed_out", "not_authorised", "no_leader"),
    # Counters that only some series have.
    (EXPORTER_COLLECT_ERRORS_TOTAL.name, "cluster"): ("c0", "c1"),
    (EXPORTER_MALFORMED_RECORDS_TOTAL.name, "cluster"): ("c0", "c1"),
    # A group reads two of the topics.
    **{
        (metric.name, "topic"): ("topic-0", "topic-1")
        for metric in (CHECKPOINT_LAG_RECORDS, GROUP_LAG_RECORDS, GROUP_LAG_SECONDS)
    },
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A fleet: the topics, groups and tasks per connector of each flow."""

    flows: int = 100
    topics: int = 20
    partitions: int = 5
    groups: int = 20
    tasks: int = 4
    replicas: int = 2
    granularity: Granularity = Granularity.TOPIC

    @property
    def flow_labels(self) -> Sequence[tuple[tuple[str, str], ...]]:
        """The labels of each flow."""
        return [
            tuple(
                zip(FLOW_LABELS, (f"c{n}->d{n % TARGETS}", f"c{n}", f"d{n % TARGETS}"), strict=True)
            )
            for n in range(self.flows)
        ]

    @property
    def indicators(self) -> Sequence[tuple[tuple[str, str], ...]]:
        """The labels of each SLI of a flow that has an objective by default."""
        keys = [rule.key for rule in default_objective_rules()]
        return [(("sli", key.sli.value), ("tier", key.tier)) for key in keys]

    def values(self, metric: str, label: str) -> Sequence[str]:
        """The values of *label* of *metric*; KeyError for an unknown label."""
        if found := _METRIC_VALUES.get((metric, label)):
            return found
        counted = {
            "topic": self.topics,
            "partition": self.partitions,
            "group": self.groups,
            "task": self.tasks,
        }
        if label in counted:
            prefix = "" if label in {"partition", "task"} else f"{label}-"
            return [f"{prefix}{n}" for n in range(counted[label])]
        if label == "cluster":
            targets = min(TARGETS, self.flows)
            return [*(f"c{n}" for n in range(self.flows)), *(f"d{n}" for n in range(targets))]
        return _VALUES[label]
