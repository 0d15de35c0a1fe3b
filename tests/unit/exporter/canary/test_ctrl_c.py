"""Ctrl-C at the terminal also reaches the canary process and must not end it."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest
from process_figures import processes

from mm2slo_exporter.canary.canary_supervisor import CanarySupervisor
from mm2slo_lab.managed_process import wait_for


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/<pid>/status")
def test_canary_process_blocks_sigint_from_its_start() -> None:
    supervisor = CanarySupervisor([], on_failure=print)
    supervisor.start()
    try:
        wait_for(lambda: bool(processes(os.getpid())["canary"]), "the canary process")
        started = processes(os.getpid())
        for pid in (*started["fork server"], *started["canary"]):
            status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
            blocked = re.search(r"^SigBlk:\s*([0-9a-f]+)$", status, re.MULTILINE)
            assert blocked is not None
            assert int(blocked[1], 16) >> (signal.SIGINT - 1) & 1
    finally:
        supervisor.stop()
