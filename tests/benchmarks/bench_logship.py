"""mm2slo logship as a process: events per CPU-second, memory during an outage, and latency.

python tests/benchmarks/bench_logship.py [--outage-seconds 600 --outage-lines 5000000]
The process's own CPU time is counted; the sink that answers it runs in another process.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import os
import random
import re
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

EVENTS: Final = 300_000
BYTES: Final = 500
LIMIT: Final = 25_000
LIMIT_MB: Final = 80
RATE: Final = 1_000
LATENCY_SECONDS: Final = 20
TERMS: Final = [f"{random.Random(n).randrange(16**6):06x}" for n in range(400)]
"""Log text repeats itself, but not as much as a filler of one letter."""
TRACE: Final = "java.lang.RuntimeException: failed\n" + "".join(
    f"\tat org.apache.kafka.connect.runtime.Worker{n}.run(Worker{n}.java:{n})\n" for n in range(60)
)
ANSWER: Final = b'HTTP/1.1 200 OK\r\nContent-Length: 27\r\n\r\n{"text":"Success","code":0}'


def json_line(draw: random.Random, message: str = "Committing offsets for 12 messages") -> str:
    """98 % one-liners, 2 % with a secret, 0.1 % with a stack trace of 4 KB."""
    roll = draw.random()
    fields = {
        "timestamp": "2026-11-22T17:14:01.837123Z",
        "level": "INFO",
        "context": "[MirrorSourceConnector|task-0] ",
        "logger": "org.apache.kafka.connect.runtime.WorkerSourceTask",
        "thread": "task-thread-MirrorSourceConnector-0",
        "message": message + (" sasl.password=hunter2" if roll < 0.02 else ""),
        "error.stack_trace": TRACE if roll < 0.001 else "",
    }
    missing = BYTES - len(json.dumps(fields))
    return json.dumps(fields | {"message": f"{fields['message']} {padding(draw, missing)}"}) + "\n"


def padding(draw: random.Random, count: int) -> str:
    return " ".join(draw.choices(TERMS, k=max(count, 0) // 7))


def text_line(draw: random.Random) -> str:
    roll = draw.random()
    head = "[2026-11-22 17:14:01,837] INFO [MirrorSourceConnector|task-0] Committing offsets "
    secret = "sasl.password=hunter2 " if roll < 0.02 else ""
    filler = padding(draw, BYTES - len(head) - len(secret) - 60)
    trace = TRACE if roll < 0.001 else ""
    return f"{head}{secret}{filler} (org.apache.kafka.connect.runtime.WorkerSourceTask)\n{trace}"


class _Sink(socketserver.StreamRequestHandler):
    """Accepts each request; its arrival and body are kept if the server wants them."""

    def handle(self) -> None:
        while head := self.rfile.readline():
            length = 0
            while (line := self.rfile.readline()).strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            body = self.rfile.read(length)
            assert head.startswith(b"POST")
            self.server.bodies.append((time.time(), body))  # type: ignore[attr-defined]
            self.wfile.write(ANSWER)


def _serve(port: Connection) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Sink) as server:
        server.daemon_threads = True
        server.bodies = []  # type: ignore[attr-defined]
        port.send(server.server_address[1])
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port.recv()
        port.send(server.bodies)  # type: ignore[attr-defined]


@contextmanager
def sink() -> Iterator[tuple[int, Callable[[], list[tuple[float, bytes]]]]]:
    """The port of a sink, and a function that ends it and returns what it received."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(there,), daemon=True)
    process.start()

    def received() -> list[tuple[float, bytes]]:
        here.send(None)
        bodies: list[tuple[float, bytes]] = here.recv()
        return bodies

    try:
        yield here.recv(), received
    finally:
        process.kill()


@contextmanager
def shipping(folder: Path, port: int) -> Iterator[Metrics]:
    (folder / "token").write_text("token-1")
    (folder / "token").chmod(0o600)
    listen = 20_000 + os.getpid() % 10_000
    section = {
        "endpoints": [f"http://127.0.0.1:{port}"],
        "token_file": str(folder / "token"),
        "sources": [{"paths": [str(folder / "mm2.log")]}],
        "state_dir": str(folder / "state"),
        "listen": f"127.0.0.1:{listen}",
    }
    clusters = {alias: {"bootstrap_servers": "localhost:1"} for alias in ("us", "eu")}
    document = {"clusters": clusters, "flows": [{"flow": "us->eu"}], "logship": section}
    (folder / "mm2slo.yaml").write_text(json.dumps(document))
    command = [sys.executable, "-m", "mm2slo_cli", "logship", "--config"]
    command.append(str(folder / "mm2slo.yaml"))
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log) as process:
        try:
            yield Metrics(listen)
        finally:
            process.terminate()


class Metrics:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/metrics"

    def __call__(self) -> dict[str, float]:
        with urllib.request.urlopen(self._url, timeout=60) as response:
            found = re.findall(r"(?m)^(\w+) (\S+)$", response.read().decode())
        return {name: float(number) for name, number in found}

    def wait(self, done: Callable[[dict[str, float]], bool]) -> dict[str, float]:
        while True:
            try:
                if done(values := self()):
                    return values
            except OSError:
                pass  # not started yet
            time.sleep(0.2)


def throughput(title: str, line: Callable[[random.Random], str]) -> None:
    draw = random.Random(7)
    with tempfile.TemporaryDirectory() as name, sink() as (port, _):
        folder = Path(name)
        with shipping(folder, port) as metrics:
            start = metrics.wait(lambda _: True)
            with (folder / "new.log").open("w") as log:
                log.writelines(line(draw) for _ in range(EVENTS))
            (folder / "new.log").rename(folder / "mm2.log")
            end = metrics.wait(lambda now: now["mm2_logship_events_sent_total"] >= EVENTS - 1)
    cpu = end["process_cpu_seconds_total"] - start["process_cpu_seconds_total"]
    memory = end["process_resident_memory_bytes"] / 1e6
    print(f"{title:<24} {EVENTS / cpu:9,.0f} events/CPU-s (at least {LIMIT:,} for JSON),")
    print(f"  {cpu / EVENTS * 1e6:.1f} us each, {memory:.0f} MB resident (at most {LIMIT_MB})")


def outage(seconds: float, lines: int) -> None:
    draw = random.Random(7)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        block = [json_line(draw) for _ in range(1_000)]
        with (folder / "mm2.log").open("w") as log:
            for _ in range(lines // 1_000):
                log.writelines(block)
        with shipping(folder, 1) as metrics:  # nothing listens on port 1
            metrics.wait(lambda now: now["mm2_logship_events_read_total"] > 0)
            found = []
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                time.sleep(min(seconds / 20, 5.0))
                found.append(metrics()["process_resident_memory_bytes"] / 1e6)
            unsent = metrics()["mm2_logship_unsent_bytes"] / 1e6
    print(f"outage of {seconds:.0f} s, {lines:,} lines ({unsent:,.0f} MB) unsent:")
    print(f"  {min(found):.1f} to {max(found):.1f} MB resident (at most {LIMIT_MB})")


def latency() -> None:
    with tempfile.TemporaryDirectory() as name, sink() as (port, received):
        folder = Path(name)
        with shipping(folder, port) as metrics:
            metrics.wait(lambda _: True)
            start, count = time.time(), RATE * LATENCY_SECONDS
            with (folder / "mm2.log").open("w", buffering=1) as log:
                for number in range(count):
                    time.sleep(max(start + number / RATE - time.time(), 0.0))
                    log.write(json.dumps({"message": f"at {time.time()}", "level": "INFO"}) + "\n")
            metrics.wait(lambda now: now["mm2_logship_events_sent_total"] >= count)
        waits: list[float] = []
        for arrival, body in received():
            text = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
            waits += [arrival - float(each) for each in re.findall(rb'"at ([\d.]+)"', text)]
    waits.sort()
    p50, p99 = (waits[len(waits) * each // 100] for each in (50, 99))
    print(
        f"{RATE:,} events/s: from line to acceptance p50 {p50:.2f} s, p99 {p99:.2f} s (at most 2)"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--outage-seconds", type=float, default=30.0)
    parser.add_argument("--outage-lines", type=int, default=500_000)
    options: Any = parser.parse_args()
    throughput(f"JSON lines of {BYTES} B", json_line)
    throughput(f"log4j text of {BYTES} B", text_line)
    latency()
    outage(options.outage_seconds, options.outage_lines)


if __name__ == "__main__":
    main()
