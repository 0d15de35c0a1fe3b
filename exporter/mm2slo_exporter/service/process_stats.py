"""Memory and CPU time of this process, from Linux's /proc."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from mm2slo_exporter.families.exporter_series import ProcessReport


def process_report(started_at: float) -> ProcessReport:
    """Resident memory, CPU time and start time; memory is None without /proc."""
    return ProcessReport(
        resident_memory_bytes=_resident_bytes(),
        cpu_seconds=sum(resource.getrusage(resource.RUSAGE_SELF)[:2]),
        started_at=started_at,
    )


def _resident_bytes() -> int | None:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except FileNotFoundError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
