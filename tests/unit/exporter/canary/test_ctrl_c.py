"""Ctrl-C at the terminal also reaches the canary process and must not end it."""

import multiprocessing
import re
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from mm2slo_exporter.canary.canary_supervisor import CanarySupervisor


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/<pid>/status")
def test_canary_process_blocks_sigint_from_its_start() -> None:
    started = threading.Event()
    supervisor = CanarySupervisor([], on_failure=print, on_start=started.set)
    supervisor.start()
    try:
        assert started.wait(30)
        end = time.monotonic() + 30
        while not (found := [c for c in multiprocessing.active_children() if c.pid is not None]):
            assert time.monotonic() < end
        (process,) = found
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    finally:
        supervisor.stop()
    blocked = re.search(r"^SigBlk:\s*([0-9a-f]+)$", status, re.MULTILINE)
    assert blocked is not None
    assert int(blocked[1], 16) >> (signal.SIGINT - 1) & 1
