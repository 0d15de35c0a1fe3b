"""Metrics of the canary: own records sent on the source and read back on the target."""

from mm2slo_core.catalogue._declare import counter, gauge, histogram
from mm2slo_core.catalogue.buckets import LATENCY_BUCKETS

_CARRIER = ("carrier",)

CANARY_LATENCY_SECONDS = histogram(
    "mm2_canary_latency_seconds",
    "Time from the sending of a canary on the source to its arrival on the target.",
    _CARRIER,
    buckets=LATENCY_BUCKETS,
)
CANARY_SENT_TOTAL = counter(
    "mm2_canary_sent_total", "Canaries that the source cluster acknowledged.", _CARRIER
)
CANARY_RECEIVED_TOTAL = counter(
    "mm2_canary_received_total",
    "Canaries that arrived on the target for the first time, late ones included.",
    _CARRIER,
)
CANARY_LATE_TOTAL = counter(
    "mm2_canary_late_total", "Canaries that arrived after their deadline.", _CARRIER
)
CANARY_LOST_TOTAL = counter(
    "mm2_canary_lost_total",
    "Canaries that the replicated position has passed and that did not arrive.",
    _CARRIER,
)
CANARY_EXPIRED_TOTAL = counter(
    "mm2_canary_expired_total",
    "Canaries that the source removed before they were replicated.",
    _CARRIER,
)
CANARY_DUPLICATES_TOTAL = counter(
    "mm2_canary_duplicates_total", "Further arrivals of a canary that had arrived before.", _CARRIER
)
CANARY_REORDERED_TOTAL = counter(
    "mm2_canary_reordered_total",
    "Canaries that arrived behind a later one of their partition.",
    _CARRIER,
)
CANARY_MOVED_TOTAL = counter(
    "mm2_canary_moved_total",
    "Canaries that arrived in another partition than they were sent to.",
    _CARRIER,
)
CANARY_UNKNOWN_TOTAL = counter(
    "mm2_canary_unknown_total",
    "Canaries whose fate cannot be known for a reason that is not the flow's doing.",
    _CARRIER,
)
CANARY_PENDING = gauge(
    "mm2_canary_pending", "Canaries sent whose completeness is not settled yet.", _CARRIER
)
CANARY_LAST_ARRIVAL_TIMESTAMP_SECONDS = gauge(
    "mm2_canary_last_arrival_timestamp_seconds",
    "Time at which the newest canary arrived on the target.",
    _CARRIER,
    unit="seconds",
)
