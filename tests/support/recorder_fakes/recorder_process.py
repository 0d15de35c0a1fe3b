"""A recorder in its own process, on a clock where a minute lasts 0.1 s.

    python -m recorded.recorder_process EXPORTER STORE [STATEMENT]

It prints `ready` when it records, and stops on SIGTERM, or by SIGKILL at the given store statement.
"""

from __future__ import annotations

import signal
import sys
import threading
import time

from store_specs.audit_process import kill_at_statement

from mm2slo_report.recording.recorder import Recorder
from mm2slo_report.recording.recorder_lease import RecorderLease
from mm2slo_report.recording.recording_thread import RecordingThread
from mm2slo_report.recording.scraper import Target
from mm2slo_store import Store

_INTERVAL = 0.02
_TWO_HOURS = 7200.0


def fast() -> int:
    """Epoch ms at 600 times the speed."""
    return time.time_ns() // 1_000_000 * 600


def main(exporter: str, path: str, statement: str | None = None) -> None:
    """Record until SIGTERM."""
    if statement is not None:
        kill_at_statement(int(statement))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with Store.open(path, clock=fast) as store:
        lease = RecorderLease(store, "the only one", _INTERVAL)
        recorder = Recorder([Target.at(exporter)], store, fast, keep=_TWO_HOURS, lease=lease)
        with RecordingThread(recorder, fast, interval=_INTERVAL):
            print("ready", flush=True)
            stop.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
