"""Threads, CPU and memory of processes, from /proc."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def children(pid: int) -> list[int]:
    """The processes that *pid* started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            found += map(int, (task / "children").read_text().split())
    return found


_WORKERS = {"run_canary_proc": "canary", "serve_groups": "groups"}
"""Kinds by the first 15 characters of their function's name, which is that of the process."""


def processes(pid: int) -> dict[str, list[int]]:
    """The exporter, its fork server and the workers that this started, by kind."""
    servers = [
        child
        for child in children(pid)
        if b"fork_server_process" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    found: dict[str, list[int]] = {
        "exporter": [pid],
        "canary": [],
        "groups": [],
        "fork server": servers,
    }
    for worker in (worker for server in servers for worker in children(server)):
        kind = _WORKERS.get(Path(f"/proc/{worker}/comm").read_text().strip())
        if kind is not None:  # else it was forked a moment ago
            found[kind].append(worker)
    return found


def threads(pid: int) -> Counter[str]:
    """Threads by name; librdkafka's are named `rdk:...`."""
    names = Counter[str]()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            names[(task / "comm").read_text().strip()] += 1
    return names


def cpu_seconds(pids: list[int]) -> float:
    ticks = 0
    for pid in pids:
        stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(stat[11]) + int(stat[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def waited_seconds(pids: list[int]) -> float:
    """How long threads that could run have waited for a core."""
    nanoseconds = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):
                nanoseconds += int((task / "schedstat").read_text().split()[1])
    return nanoseconds / 1e9


def rss(pid: int | None = None, field: str = "VmRSS") -> int:
    """Resident memory of a process, by default this one, in bytes."""
    pid = os.getpid() if pid is None else pid
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"/proc/{pid}/status has no {field}")


def spark_pid(spark: SparkSession) -> int:
    """The JVM of a session."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    pid: int = gateway.proc.pid
    return pid
