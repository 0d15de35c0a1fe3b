"""CPU of evaluating and rendering one round of a flow, by part and number of partitions.

Observations are made by hand, without Kafka. At rest nothing changes between rounds, moving every
partition does.
"""

import argparse
import cProfile
import pstats
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from flow_observations import flow_config

from mm2slo_cli.exporter import configure_interpreter
from mm2slo_core.catalogue.metric import Granularity
from mm2slo_core.config.exporter_settings import CanaryCarrier, Isolation
from mm2slo_core.records.connect_records import SourceOffset
from mm2slo_core.records.mirror_records import Checkpoint, OffsetSync
from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.collection_health import CollectionHealth
from mm2slo_exporter.exposition_renderer import Renderer, Snapshot
from mm2slo_exporter.families.exporter_series import ExporterReport
from mm2slo_exporter.families.family_composer import SeriesCache, limited_families
from mm2slo_exporter.flow_observation import ClusterView, Observation, OffsetsRead
from mm2slo_exporter.flow_plan import FlowPlan
from mm2slo_exporter.readers.internals_store import InternalsStore, InternalTopic
from mm2slo_exporter.service.flow_runner import probes_in_use, wanted_probes
from mm2slo_exporter.state.flow_tracker import FlowTracker
from mm2slo_exporter.timeline.record_schedule import TimelineSchedule
from mm2slo_kafka.tailed_topic import TailRecord
from mm2slo_web.service_telemetry import process_series

PARTITIONS = 5
"""Of each topic."""
GROUPS = 200
POLL_SECONDS = 5.0
BEYOND_LINEAR = 1.1
"""Goal: CPU of the larger flow, per partition, against the smaller one's."""
RETENTION = {"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1"}


_Result = TypeVar("_Result")


@dataclass
class Offsets:
    """The end of each log, its copy's, and what MirrorMaker 2 has committed."""

    end: int = 1
    copied: int = 1


class Flow:
    """A flow of *partitions* whose rounds are evaluated like in the exporter."""

    def __init__(self, partitions: int, granularity: Granularity) -> None:
        topics = [f"orders.events-{number:05d}" for number in range(partitions // PARTITIONS)]
        self.partitions = [
            TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS)
        ]
        self.copies = [TopicPartition(f"us.{topic}", number) for topic, number in self.partitions]
        self.granularity = granularity
        self.at = 1_000_000.0
        self.offsets = Offsets()
        self.spent: defaultdict[str, list[float]] = defaultdict(list)
        config = flow_config()
        self._tracker = FlowTracker(
            config, carrier=CanaryCarrier.OFF, shared_target=False, started_at=self.at
        )
        self._schedule = TimelineSchedule(config.flow)
        self._plan = FlowPlan(
            tuple(TopicPair(topic, f"us.{topic}", TopicRole.DATA) for topic in topics)
        )
        self._store = InternalsStore(
            flow_slug="us-to-eu",
            source_alias="us",
            source_connector="MirrorSourceConnector",
            connectors=frozenset({"MirrorSourceConnector"}),
            heartbeat_connector="MirrorHeartbeatConnector",
            malformed=lambda kind, reason: sys.exit(f"{kind}: {reason}"),
        )
        self._renderer, self._series = Renderer(), SeriesCache()
        self._health = CollectionHealth().report()
        self._views = self._cluster_views(topics)
        self._before: tuple[float, float] | None = None
        self._starts: dict[int, dict[TopicPartition, int]] = {}
        self._commit()
        self._store.apply(InternalTopic.OFFSET_SYNCS, self._syncs())
        self._store.apply(InternalTopic.CHECKPOINTS, self._checkpoints())

    def rest(self) -> Snapshot:
        return self._round()

    def move(self) -> Snapshot:
        self.offsets.end += 1
        self.offsets.copied = self.offsets.end - 1
        self._commit()
        return self._round()

    def _round(self) -> Snapshot:
        self.at += POLL_SECONDS
        seen = self._observe()
        report = self._timed("state", lambda: self._tracker.update(seen))
        assert report.ready
        self._timed(
            "probes",
            lambda: (wanted_probes(report, Isolation.READ_UNCOMMITTED), probes_in_use(report, {})),
        )
        topics = self._tracker.topics
        self._timed(
            "timeline",
            lambda: [
                (record.encode_key(), record.encode_value())
                for record in self._schedule.due(seen, topics.unchanged)
            ],
        )
        own = ExporterReport(
            version="bench",
            health=self._health,
            process=process_series(),
            kafka_requests={},
            reloads={},
            render_seconds=None,
            cycle_seconds=None,
        )
        families = self._timed(
            "families",
            lambda: limited_families([report], own, self.granularity, 10_000_000, self._series),
        ).families
        return self._timed("render", lambda: self._renderer.render(families))

    def _observe(self) -> Observation:
        """The offsets are new objects in each round, as if they were read."""
        source, target = (
            self._read(self.partitions, self.offsets.end),
            self._read(self.copies, self.offsets.copied),
        )
        internals = self._timed("view of internal topics", lambda: self._store.view(()))
        before, self._before = self._before, (self.at, self.at + 0.1)
        times = (*self._before, *(before or (None, None)))
        return Observation(
            at=self.at + 0.2,
            plan=self._plan,
            source=self._views[0],
            target=self._views[1],
            internals=internals,
            source_offsets=OffsetsRead(*source, {}, *times),
            target_offsets=OffsetsRead(*target, {}, *times),
            source_readable=True,
            target_readable=True,
        )

    def _read(
        self, partitions: Iterable[TopicPartition], end: int
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """End and start offsets; start offsets are read less often."""
        starts = self._starts.setdefault(id(partitions), dict.fromkeys(partitions, 0))
        return dict.fromkeys(partitions, end), starts

    def _cluster_views(self, topics: list[str]) -> tuple[ClusterView, ClusterView]:
        commits = {
            f"group-{number:03d}": {
                TopicPartition(topic, partition): 1
                for topic in topics[number::GROUPS]
                for partition in range(PARTITIONS)
            }
            for number in range(GROUPS)
        }
        source, target = topics, [f"us.{topic}" for topic in topics]
        views = [
            ClusterView(
                topics=dict.fromkeys(names, PARTITIONS),
                topic_ids=dict.fromkeys(names, "id"),
                topic_configs={name: {} for name in names},
                retention_configs=dict.fromkeys(names, RETENTION),
                group_offsets=commits if names is source else {},
                groups_complete=True,
                topics_read_at=self.at,
                groups_read_at=dict.fromkeys(commits, self.at) if names is source else {},
            )
            for names in (source, target)
        ]
        return views[0], views[1]

    def _commit(self) -> None:
        self._store.apply(
            InternalTopic.COMMITTED_OFFSETS,
            [
                _record(SourceOffset("MirrorSourceConnector", "us", each, self.offsets.copied - 1))
                for each in self.partitions
            ],
        )

    def _syncs(self) -> list[TailRecord]:
        return [_record(OffsetSync(each, 0, 0)) for each in self.partitions]

    def _checkpoints(self) -> list[TailRecord]:
        number_of = {
            topic: n for n, topic in enumerate(dict.fromkeys(c.topic for c in self.copies))
        }
        return [
            _record(Checkpoint(f"group-{number_of[each.topic] % GROUPS:03d}", each, 1, 1))
            for each in self.copies
        ]

    def _timed(self, part: str, work: Callable[[], _Result]) -> _Result:
        started = time.thread_time()
        result = work()
        self.spent[part].append(time.thread_time() - started)
        return result


def _record(found: OffsetSync | SourceOffset | Checkpoint) -> TailRecord:
    return TailRecord(0, 0, 1000, found.encode_key(), found.encode_value(), None)


def measure(flow: Flow, rounds: int) -> dict[str, dict[str, float]]:
    """Median CPU seconds per part, at rest and moving."""
    found = {}
    for name, step in (("at rest", flow.rest), ("moving", flow.move)):
        for _ in range(3):
            step()
        flow.spent.clear()
        for _ in range(rounds):
            step()
        found[name] = {part: statistics.median(each) for part, each in flow.spent.items()}
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--partitions", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--larger", type=int, default=5, help="how many times as large")
    arguments.add_argument("--granularity", default="partition")
    arguments.add_argument("--profile", choices=("rest", "move"))
    chosen = arguments.parse_args()
    configure_interpreter()
    granularity = Granularity.parse(chosen.granularity)
    flow = Flow(chosen.partitions, granularity)
    if chosen.profile:
        step = flow.rest if chosen.profile == "rest" else flow.move
        for _ in range(3):
            step()
        profiler = cProfile.Profile(time.thread_time)
        profiler.enable()
        for _ in range(5):
            step()
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(30)
        return
    small = measure(flow, chosen.rounds)
    del flow
    partitions = chosen.larger * chosen.partitions
    large = measure(Flow(partitions, granularity), max(3, chosen.rounds // 3))
    print(f"one round, {chosen.granularity} granularity: CPU of the evaluating thread, median")
    for state, parts in small.items():
        print(f"  {state:<28}{chosen.partitions:>10,} {partitions:>12,}")
        for part, seconds in parts.items():
            print(f"    {part:<26}{seconds * 1000:>7.1f} ms {large[state][part] * 1000:>9.1f} ms")
        total, larger = sum(parts.values()), sum(large[state].values())
        ratio = f"{larger / total:.2f}x (goal: {BEYOND_LINEAR * chosen.larger:.1f}x)"
        print(f"    {'all':<26}{total * 1000:>7.1f} ms {larger * 1000:>9.1f} ms   {ratio}")


if __name__ == "__main__":
    main()
