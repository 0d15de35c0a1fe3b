"""Start of the exporter with a long watermark timeline: time until ready, and the history's cost.

All partitions have a lag as old as the timeline, so that it is read back as far as memory allows.
"""

import argparse
import contextlib
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from itertools import chain

from large_flow.large_flow import FLOW, LargeFlow, Shape
from large_flow.record_sender import RecordSender, append
from process_figures import cpu_seconds, processes, rss

from mm2slo_core.records.timeline_record import PollTimes, Side, WatermarkRecord
from mm2slo_lab.managed_process import HOST, free_ports

PARTITIONS = 50
LAG = 60
POLL_SECONDS = 5.0
REACH_SECONDS = 15.0
_SINCE = "mm2_exporter_history_start_timestamp_seconds{"
_RANDOM_COLUMNS = 1000
_WAIT_SECONDS = 300.0


def write_timeline(flow: LargeFlow, topic: str, polls: int, older_bytes: float) -> None:
    """Both sides of all topics at each poll up to now, while *LAG* records arrive.

    Before them *older_bytes* of polls that are older than any lag: the first one again and again.
    """
    random.seed(1)
    distances = [
        tuple(random.randrange(10**8) for _ in range(PARTITIONS)) for _ in range(_RANDOM_COLUMNS)
    ]
    numbers = tuple(range(PARTITIONS))
    first = time.time() - polls * POLL_SECONDS
    with RecordSender(flow.target) as sender:
        for poll in range(polls):
            at = first + poll * POLL_SECONDS
            times = PollTimes(at, at + 0.01, at - POLL_SECONDS, at - POLL_SECONDS + 0.01)
            ends = tuple(1 + int(LAG * (poll + n / PARTITIONS) / polls) for n in numbers)
            written = []
            for name in flow.shape.source_topics:
                for side, copy in ((Side.SOURCE, name), (Side.TARGET, f"us.{name}")):
                    columns = random.choices(distances, k=4)
                    record = WatermarkRecord(
                        FLOW, side, copy, None, "read_uncommitted", times, numbers, ends, *columns
                    )
                    written.append((record.encode_key(), record.encode_value()))
            repeats = int(older_bytes / sum(map(len, chain(*written)))) if poll == 0 else 0
            for older in range(repeats, -1, -1):
                milliseconds = int(1000 * (at - older * POLL_SECONDS))
                for key, value in written:
                    sender.send(topic, value, 0, key=key, timestamp_ms=milliseconds)


def get(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://{HOST}:{port}{path}", timeout=30) as answer:
        return str(answer.read().decode())


def await_ready(exporter: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < deadline and exporter.poll() is None:
        with contextlib.suppress(OSError):  # also what urllib raises for status 503
            get(port, "/readyz")
            return
        time.sleep(0.05)
    raise TimeoutError(f"not ready in {_WAIT_SECONDS:.0f} s; exit code {exporter.poll()}")


def await_history(port: int) -> tuple[float, float]:
    """Wait until four polls add no history; when it was complete, and from when on it is."""
    since, changed = 0.0, time.monotonic()
    while not since or time.monotonic() - changed < 4 * POLL_SECONDS:
        for line in get(port, "/metrics").splitlines():
            if line.startswith(_SINCE) and float(line.split()[-1]) != since:
                since, changed = float(line.split()[-1]), time.monotonic()
        time.sleep(1)
    return changed, since


def cpu(exporter: subprocess.Popen[bytes]) -> float:
    return sum(map(cpu_seconds, processes(exporter.pid).values()))


def measure(flow: LargeFlow, timeline: str) -> None:
    (port,) = free_ports(1)
    settings = {
        "listen": f"{HOST}:{port}",
        "granularity": "partition",
        "poll_interval": f"{POLL_SECONDS:g}s",
        "timeline": {"topic": timeline},
    }
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(flow.lab.config_yaml(flow={"topics": [".*"]}, exporter=settings))
        file.flush()
        started, at = time.monotonic(), time.time()
        command = [sys.executable, "-m", "mm2slo_cli", "exporter", "--config", file.name]
        exporter = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            await_ready(exporter, port)
            took = time.monotonic() - started
            print(
                f"  ready    {took:6.1f} s, {cpu(exporter):.1f} s CPU (goal: {REACH_SECONDS:g} s)"
            )
            complete, since = await_history(port)
            took, back = complete - started, (at - since) / 3600
            print(f"  history  {took:6.1f} s, {cpu(exporter):.1f} s CPU, {back:.1f} h back")
            peak = rss(exporter.pid, "VmHWM") / 1e6
            print(f"  resident {rss(exporter.pid) / 1e6:6.0f} MB (peak {peak:.0f})", flush=True)
        finally:
            exporter.terminate()
            exporter.wait(60)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--hours", type=float, default=48.0, help="of history")
    arguments.add_argument("--topics", type=int, default=20, help=f"of {PARTITIONS} partitions")
    arguments.add_argument(
        "--older-gb", type=float, default=0.0, help="of history before that, uncompressed"
    )
    options = arguments.parse_args()
    polls = int(options.hours * 3600 / POLL_SECONDS)
    with LargeFlow.start(Shape(options.topics, PARTITIONS, groups=0)) as flow:
        for _ in range(LAG):
            append(flow.source, flow.shape.source_partitions)
        print("without a timeline", flush=True)
        measure(flow, "mm2slo.empty.internal")
        topic = "mm2slo.watermarks.internal"
        flow.lab.cluster("eu").admin.create_topic(topic, 1)
        started = time.monotonic()
        write_timeline(flow, topic, polls, options.older_gb * 1e9)
        log = (flow.lab.runtime.root / "eu" / "data" / f"{topic}-0").glob("*.log")
        size = sum(each.stat().st_size for each in log)
        shape = f"{polls:,} polls of {options.topics * PARTITIONS:,} partitions"
        took = time.monotonic() - started
        print(f"with {size / 1e9:.2f} GB: {shape}, written in {took:.0f} s", flush=True)
        measure(flow, topic)


if __name__ == "__main__":
    main()
