"""Cost of the report service with 100 flows x 7 SLIs x 28 days in the embedded store.

Measures a server process on one core: the list, cold and warm, an HTML report, lists over
persistent connections (100 entries each), start and memory. The store's file may be in the page
cache. `mm2slo report serve` is also started, with as many flows and a copy of the store.
"""

import argparse
import http.client
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

from process_figures import cpu_seconds, rss

LIST_WARM_MS, LIST_COLD_MS, HTML_MS, RATE, START_S, MEMORY_MB = 50, 300, 1_000, 200, 1.5, 150
MINUTE_MS = 60_000


def serve(path: Path, flows: int, now: int) -> None:
    """Run the service only, at time *now*; prints its port."""
    from bench_sli_history import question  # type: ignore[import-not-found]

    from mm2slo_core.config.exporter_settings import Listen
    from mm2slo_report.recording.recorder_history import RecorderSource
    from mm2slo_report.reporter import Reporter, StoreFacts
    from mm2slo_report.service_settings import Settings
    from mm2slo_report.web.report_app import create_app
    from mm2slo_report.web.report_service import ReportService
    from mm2slo_store.store import Store
    from mm2slo_web.web_server import WebServer, bind

    started = time.time()
    with Store.open(path) as store:
        reporter = Reporter(
            objectives=question(flows, now).objectives,
            source=RecorderSource(store),
            facts=StoreFacts(store),
            zone=ZoneInfo("UTC"),
            # Advance time, so that caches expire as in production.
            clock=lambda: now + round((time.time() - started) * 1000),
        )
        settings = Settings(version="0", reports_per_minute=100_000)
        # No request of this benchmark changes planned maintenance.
        maintenance = cast("Any", None)
        app = create_app(ReportService(reporter, store, settings, maintenance=maintenance))
        with WebServer(app, bind(Listen("127.0.0.1", 0), "report.listen")) as server:
            print(server.address.port, flush=True)
            server.wait()


def fetch(connection: http.client.HTTPConnection, path: str) -> tuple[float, bytes]:
    """Duration in ms, and body."""
    start = time.perf_counter()
    connection.request("GET", path, headers={"Host": "localhost"})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status} {body[:300]!r}")
    return (time.perf_counter() - start) * 1e3, body


def command_start(path: Path, flows: int, folder: Path) -> float:
    """Seconds until `mm2slo report serve` responds; there is no exporter to record."""
    copy, config = folder / "copy.db", folder / "mm2slo.yaml"
    shutil.copy(path, copy)
    names = [f"cluster-{number}" for number in range(flows)]
    document = {
        "clusters": {each: {"bootstrap_servers": "127.0.0.1:1"} for each in (*names, "hub")},
        "flows": [{"flow": f"{each}->hub"} for each in names],
        "audit": {"store": f"sqlite:///{copy}"},
        "exporter": {"listen": "127.0.0.1:1"},
        "report": {"listen": "127.0.0.1:0", "log": {"format": "json"}},
    }
    config.write_text(json.dumps(document), encoding="utf-8")
    command = [sys.executable, "-m", "mm2slo_cli", "report", "serve", "--config", str(config)]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = (json.loads(line)["message"] for line in process.stdout)
            address = next(each for each in said if each.startswith("serving "))
            port = int(address.rstrip("/").rpartition(":")[2])
            fetch(http.client.HTTPConnection("127.0.0.1", port, timeout=60), "/healthz")
            return time.perf_counter() - start
        finally:
            process.kill()


def hammer(port: int, clients: int, seconds: float) -> int:
    """Number of lists served over persistent connections; other responses end the benchmark."""
    done = [0] * clients

    def ask(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while time.perf_counter() < until:
            fetch(connection, "/slo?limit=100")
            done[number] += 1

    until = time.perf_counter() + seconds
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(done)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--flows", type=int, default=100)
    arguments.add_argument("--days", type=int, default=28)
    arguments.add_argument("--seconds", type=float, default=10.0)
    arguments.add_argument("--store", type=Path, help="keep the store here")
    arguments.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.serve:
        serve(chosen.store, chosen.flows, chosen.serve)
        return
    from bench_sli_history import START, fill

    with tempfile.TemporaryDirectory(prefix="mm2slo-bench-") as scratch:
        path = chosen.store or Path(scratch) / "slo.db"
        if not path.exists():
            fill(path, chosen.flows, chosen.days)
        now = START + chosen.days * 1440 * MINUTE_MS - 30 * MINUTE_MS
        starts = [command_start(path, chosen.flows, Path(scratch)) for _ in range(3)]
        print(
            f"  start of the command {statistics.median(starts):.2f} s "
            f"(max {max(starts):.2f}; goal {START_S})"
        )
        command = [sys.executable, __file__, "--serve", str(now), "--store", str(path)]
        command += ["--flows", str(chosen.flows)]
        start = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                port = int(process.stdout.readline())
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                fetch(connection, "/healthz")
                print(f"  start of this server {time.perf_counter() - start:.2f} s")
                measure(connection, process.pid, port, chosen.seconds)
            finally:
                process.kill()


def measure(connection: http.client.HTTPConnection, pid: int, port: int, seconds: float) -> None:
    cold, body = fetch(connection, "/slo?limit=100")
    entries = len(json.loads(body)["entries"])
    warm = [fetch(connection, "/slo?limit=100")[0] for _ in range(200)]
    # Another order in the same minute: the body is rendered again without reading the store.
    made = [fetch(connection, f"/slo?limit=100&sort={sort}")[0] for sort in ("id", "coverage")]
    print(
        f"  list of {entries} entries, {len(body) / 1e3:.0f} kB: cold {cold:.0f} ms (goal "
        f"{LIST_COLD_MS}), warm {statistics.median(warm):.1f} ms (max {max(warm):.0f}; goal "
        f"{LIST_WARM_MS}), in another order {statistics.median(made):.0f} ms"
    )
    html, body = fetch(connection, "/slo/report?format=html&period=28d")
    page, _ = fetch(connection, "/")
    one, _ = fetch(connection, "/slo/cluster-7-to-hub-availability")
    print(
        f"  report as HTML, {len(body) / 1e6:.1f} MB: {html:.0f} ms (goal {HTML_MS}); the page "
        f"{page:.0f} ms; one objective in depth {one:.0f} ms"
    )
    for clients in (1, 8):
        before, start = cpu_seconds([pid]), time.perf_counter()
        done = hammer(port, clients, seconds)
        spent = time.perf_counter() - start
        used = cpu_seconds([pid]) - before
        print(
            f"  {clients} client{'s' if clients > 1 else ''}: {done / spent:.0f} lists/s (goal "
            f"{RATE}); {used / done * 1e3:.2f} ms of a core each, so {done / used:.0f}/s on one"
        )
    print(f"  memory {rss(pid) / 2**20:.0f} MB (goal {MEMORY_MB})")


if __name__ == "__main__":
    main()
