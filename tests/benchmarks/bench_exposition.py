"""Cost of an exposition, compared with prometheus_client and with bare sockets.

Each ratio compares two measurements of the same run. Values are medians.
"""

import gc
import statistics
import time
import tracemalloc
import zlib
from collections.abc import Callable
from functools import partial
from itertools import count

from exposition_baselines import bare_sender, client_registry, fetch
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from mm2slo_core.catalogue import BY_NAME
from mm2slo_core.config.exporter_settings import Listen
from mm2slo_core.cutover.cutover_evidence import CutoverEvidence
from mm2slo_exporter.exposition_family import Family
from mm2slo_exporter.exposition_renderer import (
    LEVEL,
    Encoding,
    ExpositionFormat,
    Renderer,
    Snapshot,
)
from mm2slo_exporter.web.exporter_app import exporter_server
from mm2slo_exporter.web.flow_overview import ExporterReadiness, FlowOverview, ReloadResult
from mm2slo_web.web_server import WebServer

ROUNDS = 7
# One metric per kind of value: growing offsets, float ages, constant values.
METRICS = (
    "mm2_source_end_offset",
    "mm2_source_start_offset",
    "mm2_target_end_offset",
    "mm2_replicated_source_offset",
    "mm2_replication_lag_records",
    "mm2_replication_lag_seconds",
    "mm2_replication_progress_timestamp_seconds",
    "mm2_offset_sync_last_timestamp_seconds",
    "mm2_offset_sync_gap_records",
    "mm2_retention_headroom_records",
)
PARTITIONS = 12


def families(series: int, tick: int) -> list[Family]:
    """*series* series in total; all values change with each tick."""
    each = series // len(METRICS)
    found = []
    for name in METRICS:
        metric = BY_NAME[name]
        rows: list[tuple[tuple[str, ...], float]] = []
        for n in range(each):
            topic, partition = divmod(n, PARTITIONS)
            offset = 1_000_003 * (n % 977) + tick * 17 + n
            value = offset / 7 if metric.unit == "seconds" else offset
            rows.append((("us->eu", "us", "eu", f"orders.events-{topic}", str(partition)), value))
        found.append(Family(metric, rows))
    return found


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def median(measure: Callable[[], float], rounds: int = ROUNDS) -> float:
    return statistics.median(measure() for _ in range(rounds))


def say(what: str, took: float, base: float | None = None) -> None:
    ratio = "" if base is None else f"{took / base:8.3f}x"
    print(f"  {what:<62}{took * 1000:9.1f} ms{ratio}")


def prometheus_client(rows: list[Family]) -> float:
    registry = client_registry(rows)[0]
    classic = median(lambda: seconds(lambda: generate_latest(registry)), 3)
    say("prometheus_client, classic text", classic)
    openmetrics: Callable[[], object] = partial(generate_openmetrics, registry)
    say("prometheus_client, OpenMetrics", median(lambda: seconds(openmetrics), 3), classic)
    return classic


def ours(rows: list[Family], level: int, label: str, theirs: float) -> Renderer:
    renderer = Renderer(gzip_level=level)
    series = sum(len(family.series) for family in rows)
    ticks = count(1)

    def changed() -> float:
        fresh = families(series, next(ticks))
        return seconds(lambda: renderer.render(fresh))

    say(f"first render, both formats, {label}", seconds(lambda: renderer.render(rows)), theirs)
    say(f"render, every value new, both formats, {label}", median(changed), theirs)
    return renderer


def rendering(series: int) -> Snapshot:
    print(f"rendering {series:,} series; ratio to prometheus_client's classic text")
    rows = families(series, 0)
    theirs = prometheus_client(rows)
    ours(rows, 0, "stored, not compressed", theirs)
    renderer = ours(rows, LEVEL, f"gzip level {LEVEL}", theirs)
    snapshot = renderer.render(rows)
    say("render, no value new", median(lambda: seconds(lambda: renderer.render(rows))), theirs)
    return snapshot


def compression(snapshot: Snapshot) -> None:
    plain = b"".join(snapshot.body(ExpositionFormat.CLASSIC, Encoding.IDENTITY).chunks)
    packed = snapshot.body(ExpositionFormat.CLASSIC, Encoding.GZIP).length
    print(f"gzip of {len(plain) / 1e6:.1f} MB; assembled from families: {packed:,} bytes")
    for level in (1, 3, 6, 9):
        took = median(partial(seconds, partial(zlib.compress, plain, level)), 3)
        size = len(zlib.compress(plain, level))
        print(f"  level {level}: {took * 1000:7.1f} ms {size:>12,} bytes")


def memory(series: int) -> None:
    rows = families(series, 0)
    tracemalloc.start()
    renderer = Renderer()
    snapshot = renderer.render(rows)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    bodies = [snapshot.body(*key) for key in snapshot.bodies]
    chunks = {id(c): len(c) for body in bodies for c in body.chunks}
    alone = sum(body.length for body in bodies)
    print(f"memory at {series:,} series")
    print(f"  chunks of the four bodies: {sum(chunks.values()) / 1e6:.1f} MB "
          f"(unshared they would be {alone / 1e6:.1f} MB)")  # fmt: skip
    print(f"  snapshot and renderer: {held / 1e6:.1f} MB, peak {peak / 1e6:.1f} MB")


class OneSnapshot:
    """A site with only a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.newest = snapshot

    def snapshot(self) -> Snapshot:
        return self.newest

    def readiness(self) -> ExporterReadiness:
        return ExporterReadiness(ready=True, flows=())

    def overview(self) -> tuple[FlowOverview, ...]:
        raise NotImplementedError

    def cutover_evidence(self, slug: str) -> CutoverEvidence | None:
        raise NotImplementedError

    def reload(self) -> ReloadResult:
        raise NotImplementedError


def scrape(server: WebServer, snapshot: Snapshot, encoding: Encoding) -> None:
    request = (
        f"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: {ExpositionFormat.OPENMETRICS}\r\n"
        f"Accept-Encoding: {encoding}\r\nConnection: close\r\n\r\n"
    ).encode()
    content = b"".join(snapshot.body(ExpositionFormat.OPENMETRICS, encoding).chunks)
    with bare_sender(content) as bare_port:
        pairs = [
            (
                seconds(lambda: fetch(bare_port, request)),
                seconds(lambda: fetch(server.address.port, request)),
            )
            for _ in range(31)
        ]
    bare, scraped = (statistics.median(side) for side in zip(*pairs, strict=True))
    say(f"{encoding.value}, bare send of {len(content):,} bytes", bare)
    say(f"{encoding.value}, scrape", scraped, bare)


def scraping(snapshot: Snapshot) -> None:
    print(f"one scrape of {snapshot.series:,} series; ratio to a bare send of the same bytes")
    with exporter_server(Listen("127.0.0.1", 0), OneSnapshot(snapshot)) as server:
        for encoding in Encoding:
            scrape(server, snapshot, encoding)


def main() -> None:
    snapshot = rendering(100_000)
    compression(snapshot)
    memory(100_000)
    scraping(snapshot)
    scraping(Renderer().render(families(28_000, 0)))


if __name__ == "__main__":
    main()
