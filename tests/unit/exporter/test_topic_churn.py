"""Topics that come and go leave nothing behind: no object that names a deleted one is kept."""

import gc
from collections.abc import Iterable
from types import FunctionType, ModuleType
from typing import Any

import pytest
from flow_observations import Scene, flow_config
from tests.unit.exporter.families.conftest import OWN

from mm2slo_core.catalogue.metric import Granularity
from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.indicators.group_readiness import NewestCheckpoint
from mm2slo_core.records.mirror_records import Checkpoint, OffsetSync
from mm2slo_core.state_record import StateKey, decode_state
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.exposition_renderer import Renderer
from mm2slo_exporter.families.family_composer import SeriesCache, limited_families
from mm2slo_exporter.readers.internals_store import InternalsStore, InternalTopic
from mm2slo_exporter.state.flow_report import FlowReport
from mm2slo_exporter.state.flow_tracker import FlowTracker
from mm2slo_exporter.timeline.record_schedule import StateSchedule, TimelineSchedule
from mm2slo_kafka.tailed_topic import TailRecord

HOUR = 3600.0
_SHARED = (type, ModuleType, FunctionType)
"""Objects that belong to the program, not to a flow."""


def reachable(roots: Iterable[object]) -> Iterable[object]:
    """All objects that *roots* keep, each once."""
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        found = waiting.pop()
        if id(found) not in seen and not isinstance(found, _SHARED):
            seen.add(id(found))
            yield found
            waiting += gc.get_referents(found)


class Exporter:
    """Evaluation, timeline and rendering of one flow, as the exporter connects them."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.scene.source["groups_complete"] = True
        self.at = 1000.0
        config = flow_config()
        self.tracker = FlowTracker(
            config, carrier=CanaryCarrier.OFF, shared_target=False, started_at=self.at
        )
        self.schedule = TimelineSchedule(config.flow)
        self.state = StateSchedule(config.flow)
        self.series, self.renderer = SeriesCache(), Renderer()

    def create(self, topic: str) -> None:
        self.scene.add(topic, 2).live(3, 5)
        # As the reader of groups, which makes a new mapping for other commits.
        commits = {f"reader-of-{topic}": {TopicPartition(topic, 0): 2}}
        self.scene.source["group_offsets"] = self.scene.source.get("group_offsets", {}) | commits
        checkpoints = self.scene.internals.setdefault("checkpoints", {})
        checkpoints[f"reader-of-{topic}"] = {
            TopicPartition(f"us.{topic}", 0): NewestCheckpoint(2, 2, self.at)
        }

    def delete(self, topic: str) -> None:
        """Delete the topic, its copy and its group, whose checkpoints expire."""
        self.scene.drop(topic)
        commits = self.scene.source["group_offsets"]
        self.scene.source["group_offsets"] = {
            group: found for group, found in commits.items() if group != f"reader-of-{topic}"
        }
        del self.scene.internals["checkpoints"][f"reader-of-{topic}"]

    def rounds(self, count: int = 2) -> FlowReport:
        for _ in range(count):
            self.at += 5.0
            report = self.tracker.update(self.scene.look(self.at))
            topics = self.tracker.topics
            seen = self.scene.look(self.at)
            list(self.schedule.due(seen, topics.unchanged))
            for encoded, value in self.state.due(seen, report, {}):
                key = StateKey.decode(encoded)
                if value is None:
                    del self.scene.state[key]
                else:
                    self.scene.state[key] = decode_state(key, value)
            families = limited_families(
                [report], OWN, Granularity.PARTITION, 100_000, self.series
            ).families
            self.renderer.render(families)
        return report

    def kept(self) -> list[object]:
        return list(
            reachable([self.tracker, self.schedule, self.state, self.series, self.renderer])
        )


def names(kept: Iterable[object], part: str) -> list[Any]:
    return [each for each in kept if isinstance(each, str) and part in each]


def test_deleted_topics_leave_no_object_behind() -> None:
    exporter = Exporter()
    exporter.create("orders")
    sizes = []
    for cycle in range(3):
        topics = [f"short-lived-{cycle}-{number}" for number in range(20)]
        for topic in topics:
            exporter.create(topic)
        report = exporter.rounds()
        assert len(report.topics) == 21
        assert names(exporter.kept(), topics[-1])
        for topic in topics:
            exporter.delete(topic)
        exporter.rounds()
        exporter.at += HOUR
        exporter.rounds(3)
        kept = exporter.kept()
        assert names(kept, "short-lived") == []
        sizes.append(len(kept))
    assert sizes[1] == sizes[2]


def test_removed_keys_of_internal_topics_leave_no_object_behind() -> None:
    store = InternalsStore(
        flow_slug="us-to-eu",
        source_alias="us",
        source_connector="MirrorSourceConnector",
        connectors=frozenset(),
        heartbeat_connector="MirrorHeartbeatConnector",
        malformed=lambda kind, reason: pytest.fail(f"{kind}: {reason}"),
    )
    partition = TopicPartition("short-lived", 0)
    written = (
        (InternalTopic.OFFSET_SYNCS, OffsetSync(partition, 5, 5)),
        (InternalTopic.CHECKPOINTS, Checkpoint("reader-of-short-lived", partition, 5, 5)),
    )
    for topic, found in written:
        store.apply(topic, [_record(found.encode_key(), found.encode_value())])
    assert names(reachable([store]), "short-lived")
    for topic, found in written:
        store.apply(topic, [_record(found.encode_key(), None)])
    assert names(reachable([store]), "short-lived") == []


def _record(key: bytes, value: bytes | None) -> TailRecord:
    return TailRecord(0, 0, 1000, key, value, None)
