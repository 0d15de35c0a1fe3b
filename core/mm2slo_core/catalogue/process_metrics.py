"""Process metrics, with the names of Prometheus client libraries."""

from mm2slo_core.catalogue._metric_factories import counter, gauge

PROCESS_RESIDENT_MEMORY_BYTES = gauge(
    "process_resident_memory_bytes", "Resident memory size.", unit="bytes", per_flow=False
)
PROCESS_CPU_SECONDS_TOTAL = counter(
    "process_cpu_seconds_total",
    "Total user and system CPU time spent.",
    unit="seconds",
    per_flow=False,
)
PROCESS_START_TIME_SECONDS = gauge(
    "process_start_time_seconds",
    "Start time of the process since the epoch.",
    unit="seconds",
    per_flow=False,
)
