"""Metrics of a flow as a whole."""

from mm2slo_core.catalogue._metric_factories import MetricSubject
from mm2slo_core.catalogue.metric import Granularity

FLOWS = MetricSubject("Flows")
FLOW_INFO = FLOWS.gauge(
    "mm2_flow_info",
    "Always 1; the labels describe the flow, its canary, and whether MirrorMaker 2 emits "
    "heartbeats.",
    ("policy", "separator", "engine", "canary", "heartbeats"),
)
FLOW_SETTING_OVERRIDDEN = FLOWS.gauge(
    "mm2_flow_setting_overridden",
    "1 for a setting of the flow that running connectors have differently than configured; their "
    "value is used. The log has both values.",
    ("setting",),
)
TOPIC_INFO = FLOWS.gauge(
    "mm2_topic_info",
    "Always 1; maps a source topic to its target topic.",
    ("topic", "target_topic"),
    coarsest=Granularity.TOPIC,
)
FLOW_STATE = FLOWS.gauge(
    "mm2_flow_state",
    "1 for the state of the flow (running, idle, stopped or unknown), 0 for the others.",
    ("state",),
)
FLOW_OBSERVED_TIMESTAMP_SECONDS = FLOWS.gauge(
    "mm2_flow_observed_timestamp_seconds",
    "Time of the newest observation of the flow that was evaluated; at first the time of its "
    "start.",
    unit="seconds",
)
FLOW_LAG_RECORDS = FLOWS.gauge(
    "mm2_flow_lag_records",
    "Source records that the flow has not yet replicated, over all partitions.",
    unit="records",
)
FLOW_LAG_SECONDS = FLOWS.gauge(
    "mm2_flow_lag_seconds",
    "Age of the oldest source record that the flow has not yet replicated; 0 without lag.",
    unit="seconds",
)
CATCHUP_ETA_SECONDS = FLOWS.gauge(
    "mm2_catchup_eta_seconds",
    "Estimated time until the lag is zero at the current net rate; absent unless the lag shrinks.",
    unit="seconds",
)
REPLICATED_PARTITIONS = FLOWS.gauge(
    "mm2_replicated_partitions",
    "Replicated partitions of the flow, by quality of their replicated position.",
    ("quality",),
)
LAG_SECONDS_ORIGIN_PARTITIONS = FLOWS.gauge(
    "mm2_lag_seconds_origin_partitions",
    "Replicated partitions of the flow, by origin of their lag in seconds; it is unknown with "
    "pending, after a start until the timeline has been read, and with absent.",
    ("origin",),
)
