"""A recorder in a process of its own, on a clock where a minute is a tenth of a second.

    python -m recorded.child EXPORTER STORE [STATEMENT]

It says `ready` once it records, and ends with what it has stored on SIGTERM; or by SIGKILL at the
store's statement of that number.
"""

from __future__ import annotations

import signal
import sys
import threading
import time

from store_specs.other_process import die_at

from mm2slo_report.recording.duty import Duty
from mm2slo_report.recording.recorder import Recorder
from mm2slo_report.recording.scraping import Target
from mm2slo_report.recording.service import RecordingThread
from mm2slo_store import Store

_INTERVAL = 0.02
_TWO_HOURS = 7200.0


def fast() -> int:
    """Epoch ms, six hundred times as fast."""
    return time.time_ns() // 1_000_000 * 600


def main(exporter: str, path: str, statement: str | None = None) -> None:
    """Record until it is told to end."""
    if statement is not None:
        die_at(int(statement))
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    with Store.open(path, clock=fast) as store:
        duty = Duty(store, "the only one", _INTERVAL)
        recorder = Recorder([Target.at(exporter)], store, fast, keep=_TWO_HOURS, duty=duty)
        with RecordingThread(recorder, fast, interval=_INTERVAL):
            print("ready", flush=True)
            ending.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
