"""The way of an offset sync: from the bytes that MirrorMaker 2 writes to the text of /metrics.

Two equal flows read a round, one of them after a new offset sync. A product file is on the way if
one of its calls has a value of the sync in its arguments or its result and the round without a sync
does not make that call; the callers of such a call are on the way, too. What every round does
anyway (other metrics, groups, SLIs) is thus left out.

Run with `-s` to see the files.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from called_files import product_file
from flow_observations import Scene, flow_config

from mm2slo_core.catalogue.metric import Granularity
from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.collection_health import CollectionHealth
from mm2slo_exporter.exposition_renderer import Encoding, ExpositionFormat, Renderer
from mm2slo_exporter.families.exporter_series import ExporterReport
from mm2slo_exporter.families.family_composer import SeriesCache, families
from mm2slo_exporter.flow_plan import FlowPlan
from mm2slo_exporter.readers.internals_store import InternalsStore, InternalTopic
from mm2slo_exporter.state.flow_tracker import FlowTracker
from mm2slo_kafka.tailed_topic import TailRecord

MOST_FILES = 20

ORDERS = TopicPartition("orders", 0)
UPSTREAM, DOWNSTREAM = 777_001, 880
WRITTEN_MS = 9_940_125
# The topic as an INT16 length and UTF-8, the partition as INT32; then both offsets as INT64.
SYNC_KEY = b"\x00\x06orders\x00\x00\x00\x00"
SYNC_VALUE = bytes.fromhex("00000000000bdb290000000000000370")
SYNC_TEXTS = (str(UPSTREAM), str(UPSTREAM + 1), "9940.125", repr(SYNC_KEY)[2:-1])
"""How the sync shows in the arguments of a call: its values, and the position that it proves."""

COMMIT_KEY = b'["MirrorSourceConnector",{"cluster":"us","partition":0,"topic":"orders"}]'
COMMIT_VALUE = b'{"offset":777001}'

Stack = tuple[tuple[str, str], ...]
"""The product's functions on the stack, outermost first: file and name."""


class ReplicatedFlow:
    """A flow that has replicated all records, as a commit shows, and its exposition."""

    def __init__(self) -> None:
        self.store = InternalsStore(
            flow_slug="us-to-eu",
            source_alias="us",
            source_connector="MirrorSourceConnector",
            connectors=frozenset({"MirrorSourceConnector"}),
            heartbeat_connector="MirrorHeartbeatConnector",
            malformed=lambda kind, reason: pytest.fail(f"malformed {kind}: {reason}"),
        )
        self._tracker = FlowTracker(
            flow_config(), carrier=CanaryCarrier.OFF, shared_target=False, started_at=0.0
        )
        self._scene = Scene()
        log = self._scene.add("orders")
        log.end, log.target_end = UPSTREAM + 1, DOWNSTREAM + 1
        self._plan: FlowPlan | None = None
        self._cache, self._renderer = SeriesCache(), Renderer()
        self._own = ExporterReport("0.1.0", CollectionHealth().report(), {})
        self._take(InternalTopic.COMMITTED_OFFSETS, COMMIT_KEY, COMMIT_VALUE)
        for at in (10_000.0, 10_005.0, 10_010.0):
            self.scrape(at)

    def take_sync(self) -> None:
        self._take(InternalTopic.OFFSET_SYNCS, SYNC_KEY, SYNC_VALUE)

    def scrape(self, at: float) -> list[str]:
        """Read a round; returns the lines of /metrics."""
        seen = self._scene.look(at)
        self._plan = self._plan or seen.plan  # the same object while topics are, as in the exporter
        seen = replace(seen, plan=self._plan, internals=self.store.view(()))
        report = self._tracker.update(seen)
        found = families([report], self._own, Granularity.PARTITION, self._cache)
        body = self._renderer.render(found).body(ExpositionFormat.CLASSIC, Encoding.IDENTITY)
        return b"".join(body.chunks).decode().splitlines()

    def _take(self, topic: InternalTopic, key: bytes, value: bytes) -> None:
        self.store.apply(topic, [TailRecord(0, 0, WRITTEN_MS, key, value, None)])


def calls_with_sync(work: Callable[[], list[str]]) -> tuple[Counter[Stack], list[str]]:
    """The calls of *work* whose arguments or result show the sync, and its result."""
    calls: Counter[Stack] = Counter()

    def note(frame: FrameType, event: str, result: Any) -> None:
        if event not in {"call", "return"} or product_file(frame.f_code.co_filename) is None:
            return
        text = repr(list(frame.f_locals.values()) if event == "call" else result)
        if any(each in text for each in SYNC_TEXTS):
            calls[product_stack(frame)] += 1

    # Not sys.settrace, which coverage needs; sys.monitoring only exists from Python 3.12 on.
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return calls, work()
    finally:
        sys.setprofile(before)


def product_stack(frame: FrameType | None) -> Stack:
    found: list[tuple[str, str]] = []
    while frame is not None:
        if (file := product_file(frame.f_code.co_filename)) is not None:
            found.append((file, frame.f_code.co_name))
        frame = frame.f_back
    return tuple(reversed(found))


def test_offset_sync_reaches_metrics_through_at_most_twenty_files() -> None:
    without, with_sync = ReplicatedFlow(), ReplicatedFlow()

    def scrape_with_sync() -> list[str]:
        with_sync.take_sync()
        return with_sync.scrape(10_015.0)

    usual, lines_without = calls_with_sync(lambda: without.scrape(10_015.0))
    calls, lines = calls_with_sync(scrape_with_sync)

    labels = 'flow="us->eu",source="us",target="eu",topic="orders",partition="0"'
    changed = [line for line in lines if line not in lines_without and not line.startswith("#")]
    assert [line for line in changed if line.startswith("mm2_offset_sync_")] == [
        f"mm2_offset_sync_last_timestamp_seconds{{{labels}}} 9940.125",
        f"mm2_offset_sync_gap_records{{{labels}}} 0",
    ]
    assert f'mm2_position_quality{{{labels},quality="live"}} 1' in changed
    assert f"mm2_replicated_source_offset{{{labels}}} {UPSTREAM + 1}" in lines

    files: dict[str, list[str]] = {}
    for stack in calls - usual:
        for file, function in stack:
            names = files.setdefault(file, [])
            if function not in names and not function.startswith("<"):
                names.append(function)
    print(f"\nan offset sync takes {len(files)} product files to /metrics:")
    for file, functions in files.items():
        print(f"  {file}: {', '.join(functions)}")
    first, *_, last = files
    assert (Path(first).stem, Path(last).stem) == ("internals_store", "exposition_renderer")
    assert len(files) <= MOST_FILES


@pytest.mark.xdist_group("spark")
def test_bytes_of_the_sync_are_those_that_kafka_writes(probe: Any) -> None:
    assert list(probe("offsetSync", *ORDERS, UPSTREAM, DOWNSTREAM)) == [SYNC_KEY, SYNC_VALUE]
