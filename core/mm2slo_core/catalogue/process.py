"""Metrics of the process, by the names every Prometheus client library uses."""

from mm2slo_core.catalogue._declare import counter, gauge

PROCESS_RESIDENT_MEMORY_BYTES = gauge(
    "process_resident_memory_bytes", "Resident memory size.", unit="bytes", per_flow=False
)
PROCESS_CPU_SECONDS_TOTAL = counter(
    "process_cpu_seconds_total",
    "User and system processor time spent.",
    unit="seconds",
    per_flow=False,
)
PROCESS_START_TIME_SECONDS = gauge(
    "process_start_time_seconds",
    "Time at which the process started, in seconds since the epoch.",
    unit="seconds",
    per_flow=False,
)
