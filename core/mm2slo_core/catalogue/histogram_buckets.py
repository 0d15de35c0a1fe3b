"""Histogram buckets in seconds. Latency objectives must be equal to one of them."""

LATENCY_BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0),
)
"""From a flow on one machine (p50 14 ms) to beyond the default deadline of 60 s."""

COLLECT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""From one round trip to the timeout of Kafka requests."""
