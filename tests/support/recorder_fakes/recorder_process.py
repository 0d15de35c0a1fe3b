"""A recorder in its own process, on a clock that moves 15 s at each scrape.

    python -m recorder_fakes.recorder_process EXPORTER STORE PAGES [STATEMENT]

PAGES were requested before, which is where the clock starts. It prints `ready` when it records, and
stops on SIGTERM, or by SIGKILL at the given store statement.
"""

import signal
import sys
import threading

from store_specs.store_process import kill_at_statement

from mm2slo_report.recording.exporter_scraper import ScrapeTarget
from mm2slo_report.recording.recorder import Recorder
from mm2slo_report.recording.recorder_history import RecorderLease
from mm2slo_store.store import Store
from recorder_fakes import NOON

_INTERVAL_MS = 15_000
_PAUSE = 0.01


def main(exporter: str, path: str, pages: str, statement: str | None = None) -> None:
    """Record until SIGTERM."""
    if statement is not None:
        kill_at_statement(int(statement))
    now = NOON + int(pages) * _INTERVAL_MS
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with Store.open(path, clock=lambda: now) as store:
        lease = RecorderLease(store, "the only one", _INTERVAL_MS / 1000)
        recorder = Recorder([ScrapeTarget.at(exporter)], store, lambda: now, lease=lease)
        print("ready", flush=True)
        while not stop.wait(_PAUSE):
            recorder.run_once()
            now += _INTERVAL_MS
        recorder.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
