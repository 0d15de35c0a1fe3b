"""Metrics of the process and of Python, with the names of prometheus-client."""

from mm2slo_core.catalogue._metric_factories import MetricSubject

PROCESS = MetricSubject("Process")
PROCESS_RESIDENT_MEMORY_BYTES = PROCESS.gauge(
    "process_resident_memory_bytes", "Resident memory size.", unit="bytes", per_flow=False
)
PROCESS_CPU_SECONDS_TOTAL = PROCESS.counter(
    "process_cpu_seconds_total",
    "Total user and system CPU time spent.",
    unit="seconds",
    per_flow=False,
)
PROCESS_START_TIME_SECONDS = PROCESS.gauge(
    "process_start_time_seconds",
    "Start time of the process since the epoch.",
    unit="seconds",
    per_flow=False,
)
PROCESS_VIRTUAL_MEMORY_BYTES = PROCESS.gauge(
    "process_virtual_memory_bytes", "Virtual memory size.", unit="bytes", per_flow=False
)
PROCESS_OPEN_FDS = PROCESS.gauge("process_open_fds", "Open file descriptors.", per_flow=False)
PROCESS_MAX_FDS = PROCESS.gauge(
    "process_max_fds", "Limit of open file descriptors.", per_flow=False
)
PYTHON_INFO = PROCESS.gauge(
    "python_info",
    "Always 1; the labels are the version of Python.",
    ("version", "implementation", "major", "minor", "patchlevel"),
    per_flow=False,
)
