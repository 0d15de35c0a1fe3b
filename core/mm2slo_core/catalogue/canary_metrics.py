"""Metrics of the canary."""

from mm2slo_core.catalogue._metric_factories import MetricSubject
from mm2slo_core.catalogue.histogram_buckets import LATENCY_BUCKETS

_CARRIER = ("carrier",)

CANARY = MetricSubject("Canary")
CANARY_LATENCY_SECONDS = CANARY.histogram(
    "mm2_canary_latency_seconds",
    "Time from sending a canary on the source to its arrival on the target.",
    _CARRIER,
    buckets=LATENCY_BUCKETS,
)
CANARY_SENT_TOTAL = CANARY.counter(
    "mm2_canary_sent_total", "Canaries that the source cluster acknowledged.", _CARRIER
)
CANARY_RECEIVED_TOTAL = CANARY.counter(
    "mm2_canary_received_total",
    "Canaries that arrived on the target, including late ones, without duplicates.",
    _CARRIER,
)
CANARY_LATE_TOTAL = CANARY.counter(
    "mm2_canary_late_total", "Canaries that arrived after their deadline.", _CARRIER
)
CANARY_LOST_TOTAL = CANARY.counter(
    "mm2_canary_lost_total",
    "Canaries that did not arrive although the replicated position passed them.",
    _CARRIER,
)
CANARY_EXPIRED_TOTAL = CANARY.counter(
    "mm2_canary_expired_total",
    "Canaries that the source removed before they were replicated.",
    _CARRIER,
)
CANARY_DUPLICATES_TOTAL = CANARY.counter(
    "mm2_canary_duplicates_total", "Repeated arrivals of canaries.", _CARRIER
)
CANARY_REORDERED_TOTAL = CANARY.counter(
    "mm2_canary_reordered_total",
    "Canaries that arrived after a later canary of their partition.",
    _CARRIER,
)
CANARY_MOVED_TOTAL = CANARY.counter(
    "mm2_canary_moved_total",
    "Canaries that arrived in a partition other than that on the source.",
    _CARRIER,
)
CANARY_UNKNOWN_TOTAL = CANARY.counter(
    "mm2_canary_unknown_total",
    "Canaries whose outcome is unknown for a reason outside of the flow.",
    _CARRIER,
)
CANARY_PENDING = CANARY.gauge(
    "mm2_canary_pending", "Canaries that were sent and are not settled for completeness.", _CARRIER
)
CANARY_LAST_ARRIVAL_TIMESTAMP_SECONDS = CANARY.gauge(
    "mm2_canary_last_arrival_timestamp_seconds",
    "Arrival time of the newest canary on the target.",
    _CARRIER,
    unit="seconds",
)
