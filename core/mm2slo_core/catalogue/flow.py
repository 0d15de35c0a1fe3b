"""Metrics of a flow as a whole."""

from mm2slo_core.catalogue._declare import gauge
from mm2slo_core.catalogue.model import Granularity

FLOW_INFO = gauge(
    "mm2_flow_info",
    "Always 1; describes how the flow replicates and how it is probed.",
    ("policy", "separator", "engine", "canary"),
)
TOPIC_INFO = gauge(
    "mm2_topic_info",
    "Always 1; maps a source topic to its name on the target cluster.",
    ("topic", "target_topic"),
    coarsest=Granularity.TOPIC,
)
FLOW_STATE = gauge(
    "mm2_flow_state",
    "1 for the state the flow is in, 0 for the others: running, idle, stopped or unknown.",
    ("state",),
)
FLOW_LAG_RECORDS = gauge(
    "mm2_flow_lag_records",
    "Source records that the flow has not yet replicated, over all its partitions.",
    unit="records",
)
FLOW_LAG_SECONDS = gauge(
    "mm2_flow_lag_seconds",
    "Age of the oldest source record that the flow has not yet replicated; 0 when none waits.",
    unit="seconds",
)
CATCHUP_ETA_SECONDS = gauge(
    "mm2_catchup_eta_seconds",
    "Time until the lag is gone at the present net rate; absent while the lag does not shrink.",
    unit="seconds",
)
REPLICATED_PARTITIONS = gauge(
    "mm2_replicated_partitions",
    "Replicated partitions of the flow by how exactly their replicated position is known.",
    ("quality",),
)
LAG_SECONDS_ORIGIN_PARTITIONS = gauge(
    "mm2_lag_seconds_origin_partitions",
    "Replicated partitions of the flow by where their lag in seconds comes from.",
    ("origin",),
)
