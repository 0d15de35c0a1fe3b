"""Runs the exporter in a separate process, so that measuring it does not affect it."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Self

from process_figures import children, cpu_seconds, processes, rss

from mm2slo_lab.running_lab import Lab

_SUPPORT = Path(__file__).parents[1]


class ExporterProcess:
    """Runs `large_flow.instrumented_exporter` and reads its lines: one JSON object per event."""

    def __init__(
        self,
        lab: Lab,
        *,
        poll_interval: str = "5s",
        flow: dict[str, object] | None = None,
        **exporter: object,
    ) -> None:
        self._file = tempfile.NamedTemporaryFile("w", suffix=".yaml")  # noqa: SIM115 - lives as long as this object
        settings = {
            "listen": "127.0.0.1:0",
            "granularity": "partition",
            "poll_interval": poll_interval,
            "instance": "bench",
            "series_limit": 1_000_000,  # never falls back to a coarser granularity
            **exporter,
        }
        self._file.write(
            lab.config_yaml(flow={"topics": [".*"], **(flow or {})}, exporter=settings)
        )
        self._file.flush()
        self._lines: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "large_flow.instrumented_exporter", self._file.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(_SUPPORT)},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.port: int = self.next("started")["port"]

    @property
    def pid(self) -> int:
        return self._process.pid

    def next(self, kind: str, timeout: float = 120.0) -> dict[str, Any]:
        """The next line of that kind; other lines before it are skipped."""
        while True:
            try:
                line = self._lines.get(timeout=timeout)
            except Empty:
                if self._process.poll() is not None:
                    code = self._process.returncode
                    raise RuntimeError(f"the exporter ended with exit code {code}") from None
                raise TimeoutError(f"the exporter wrote no {kind!r} in {timeout:.0f} s") from None
            if line["kind"] == kind:
                return line

    def taken(self, *kinds: str) -> list[dict[str, Any]]:
        """Available lines of those kinds; all others are dropped."""
        found = []
        while not self._lines.empty():
            line = self._lines.get()
            if line["kind"] in kinds:
                found.append(line)
        return found

    def compare_rendering(self) -> dict[str, Any]:
        """Let it render the current series, and prometheus_client the same ones."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self.next("render", 300.0)

    def cpu_seconds(self) -> float:
        """CPU time so far of the exporter and of all processes that it has started."""
        started = [self.pid]
        for pid in started:  # grows meanwhile
            started += children(pid)
        return cpu_seconds(started)

    def resident(self) -> dict[str, int]:
        """VmRSS of the exporter and of its canary process, in bytes."""
        found = {"exporter": rss(self.pid), "peak": rss(self.pid, "VmHWM")}
        for pid in processes(self.pid)["canary"]:
            found["canary"] = rss(pid)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._file.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(json.loads(line))
