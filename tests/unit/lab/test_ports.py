"""Free ports for the lab."""

import socket
import subprocess
import sys

import pytest

from mm2slo_lab import managed_process
from mm2slo_lab.lab_topology import LabError


def test_free_ports_are_distinct_and_below_ephemeral_range() -> None:
    found = managed_process.free_ports(20)

    assert len(set(found)) == 20
    assert all(managed_process.FIRST <= port <= managed_process.LAST < 32768 for port in found)


def test_free_ports_exclude_port_in_use() -> None:
    with socket.socket() as listener:
        listener.bind((managed_process.HOST, managed_process.free_ports(1)[0]))
        listener.listen()
        port = listener.getsockname()[1]

        assert managed_process.accepts(port)
        assert port not in {found for _ in range(20) for found in managed_process.free_ports(100)}

    assert not managed_process.accepts(port)


def test_free_ports_of_two_processes_are_distinct(monkeypatch: pytest.MonkeyPatch) -> None:
    own = managed_process.free_ports(3)
    program = f"from mm2slo_lab.managed_process import _reserve as r; print([r(p) for p in {own}])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[False, False, False]\n"
    monkeypatch.setattr(managed_process, "FIRST", own[0])
    monkeypatch.setattr(managed_process, "LAST", own[0])
    monkeypatch.setattr(managed_process, "_ATTEMPTS", 1)
    with pytest.raises(LabError, match="1 free ports not found"):
        managed_process.free_ports(1)
