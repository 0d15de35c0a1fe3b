"""Measurements as `mm2slo perf` writes them."""

from mm2slo_core.perf.perf_report import PerfCellResult, PerfLedger, PerfReport, PerfRun
from mm2slo_core.perf.perf_schedule import PerfCell, PerfLoad, PerfMode
from mm2slo_core.perf.perf_statistics import Latencies, bucket_of


def run_of(seconds: float, *, rate: float = 1000.0, problems: tuple[str, ...] = ()) -> PerfRun:
    latencies = Latencies()
    latencies.counts.update([bucket_of(seconds * (1 + number / 1000)) for number in range(100)])
    return PerfRun(
        started_at=1e9,
        rate=rate,
        latencies=latencies,
        sent=[100, 100, 90],
        arrived=[90, 100, 100],
        ledger=PerfLedger(
            sent=290, acknowledged=290, arrived=289, missing=1, duplicates=2, reordered=3, moved=4
        ),
        slip=0.002,
        reader_delay=0.001,
        cpu=0.5,
        limit="CPU",
        problems=list(problems),
    )


def report_of(mode: PerfMode, *runs: list[PerfRun]) -> PerfReport:
    cells = [
        PerfCellResult(cell=PerfCell(f"cell-{number}", PerfLoad(mode=mode)), runs=each)
        for number, each in enumerate(runs)
    ]
    return PerfReport(
        flow="us->eu", place="a lab", machine="2 CPUs", version="0.1.0", started_at=1e9, cells=cells
    )
