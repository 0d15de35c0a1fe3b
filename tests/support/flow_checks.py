"""Checks of a flow's metrics against offsets that an independent client reads."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Consumer, TopicPartition
from exporter_watch import Scrape, Watch, watch
from topic_reader import count_copies, read_topic

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_data import Load, commit, produce
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

_TIMEOUT = 30.0
_US_EU: Final = Flow("us", "eu")


@contextmanager
def start_lab(
    topology: LabTopology, progress: Progress, topics: Mapping[tuple[Flow, str], tuple[int, int]]
) -> Iterator[Lab]:
    """Start a separate lab; *topics* on the source of a flow have partitions and records."""
    with Lab.start(topology, progress=progress) as own:
        for (flow, topic), (partitions, count) in topics.items():
            own.cluster(flow.source).admin.create_topic(topic, partitions)
            if count:
                send(own, flow, topic, count)
        yield own


@contextmanager
def watch_flows(
    lab: Lab, instance: str, *flows: Flow, settings: Mapping[str, object] | None = None
) -> Iterator[Watch]:
    """Start an exporter of *flows* and wait until it is ready; *settings* apply to each flow."""
    with watch(lab, flows, flow=settings, exporter={"instance": instance}) as watching:
        watching.until_ready()
        yield watching


def end_offsets(
    properties: Mapping[str, str], topic: str, isolation: str = "read_uncommitted"
) -> dict[str, int]:
    """Read end offsets by partition with a consumer; {} if the topic does not exist.

    High watermarks, or last stable offsets with `read_committed`.
    """
    settings = {"log_level": 2, "group.id": "independent", "isolation.level": isolation}
    consumer = Consumer({**properties, **settings})
    try:
        known = consumer.list_topics(topic, timeout=_TIMEOUT).topics[topic].partitions
        found = {}
        for partition in known:
            _low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), _TIMEOUT)
            found[str(partition)] = high
        return found
    finally:
        consumer.close()


def values_by_partition(scrape: Scrape, name: str, flow: Flow, topic: str) -> dict[str, float]:
    """Return the value of each partition of a source topic."""
    return scrape.by("partition", name, flow=flow.label, topic=topic)


def position_qualities(scrape: Scrape, flow: Flow, topic: str) -> set[str]:
    """Return the position qualities of a topic's partitions."""
    return set(scrape.by("quality", "mm2_position_quality", flow=flow.label, topic=topic))


def until_copied(
    lab: Lab, seen: Watch, flow: Flow, topic: str, *, copy: str, timeout: float = 180.0
) -> Scrape:
    """Wait until the position is the source's end, and compare each offset and lag with it.

    *copy* is the topic name on the target.
    """
    source, target = (lab.cluster(alias).librdkafka() for alias in (flow.source, flow.target))
    # A broker writes the marker of a transaction after it has answered that it has ended.
    wait_for(
        lambda: end_offsets(source, topic) == end_offsets(source, topic, "read_committed"),
        f"transactions on {topic} to end",
    )
    at_source = end_offsets(source, topic)
    idle = seen.until(
        lambda s: (
            values_by_partition(s, "mm2_replicated_source_offset", flow, topic) == at_source
            and values_by_partition(s, "mm2_target_end_offset", flow, topic)
            == end_offsets(target, copy)
        ),
        f"{topic} to be copied to {at_source} on {flow}",
        timeout,
    )
    zeros = dict.fromkeys(at_source, 0)
    assert values_by_partition(idle, "mm2_replication_lag_records", flow, topic) == zeros
    assert values_by_partition(idle, "mm2_replication_lag_seconds", flow, topic) == zeros
    assert values_by_partition(idle, "mm2_source_end_offset", flow, topic) == at_source
    return idle


def until_lag(
    lab: Lab,
    seen: Watch,
    flow: Flow,
    topic: str,
    *,
    copied: Mapping[str, float],
) -> Scrape:
    """Wait until the lag of each partition is the source's end minus *copied*."""
    at_source = end_offsets(lab.cluster(flow.source).librdkafka(), topic)
    expected = {partition: end - copied[partition] for partition, end in at_source.items()}
    return seen.until(
        lambda s: values_by_partition(s, "mm2_replication_lag_records", flow, topic) == expected,
        f"a lag of {expected} on {topic} of {flow}",
        180,
    )


def read_numbers(lab: Lab, flow: Flow, copy: str, isolation: str = "read_uncommitted") -> list[int]:
    """Read the numbers in the records of a copy, as `mm2slo_lab.lab_data` wrote them."""
    found = read_topic(lab.cluster(flow.target).librdkafka(), copy, isolation=isolation)
    return sorted(int((message.value() or b"")[1:].split(b"-")[0]) for message in found)


def commit_end_offsets(lab: Lab, flow: Flow, topic: str, group: str) -> dict[int, int]:
    """Commit the end offsets of a source topic for *group*, and return them."""
    source = lab.cluster(flow.source).librdkafka()
    offsets = {int(partition): end for partition, end in end_offsets(source, topic).items()}
    commit(source, topic, group, offsets)
    return offsets


def until_ready_to_fail_over(
    seen: Watch, flow: Flow, group: str, topic: str, timeout: float = 180.0
) -> Scrape:
    """Wait until a group with all records read is ready, with no checkpoint lag."""
    ready = seen.until(
        lambda s: s.value("mm2_failover_ready", flow=flow.label, group=group) == 1,
        f"{group} to be ready on {flow}",
        timeout,
    )
    lag = ready.value("mm2_checkpoint_lag_records", flow=flow.label, group=group, topic=topic)
    assert lag == 0
    return ready


def canary_value(scrape: Scrape, flow: Flow, what: str) -> float:
    """Return a canary metric by the rest of its name, as in `received_total`."""
    value = scrape.value(f"mm2_canary_{what}", flow=flow.label)
    assert value is not None, what
    return value


def until_canaries(seen: Watch, flow: Flow, count: int, timeout: float = 180.0) -> Scrape:
    """Wait for *count* more arrivals; no canary may have any other outcome."""
    start = seen.scrape().value("mm2_canary_received_total", flow=flow.label) or 0
    scrape = seen.until(
        lambda s: (s.value("mm2_canary_received_total", flow=flow.label) or 0) >= start + count,
        f"{count} canaries of {flow}",
        timeout,
    )
    for outcome in ("lost", "expired", "duplicates", "reordered", "moved", "unknown"):
        assert canary_value(scrape, flow, f"{outcome}_total") == 0, outcome
    return scrape


def create_replicated_topic(
    lab: Lab,
    topic: str,
    count: int,
    partitions: int = 1,
    *,
    configs: Mapping[str, str] | None = None,
    flow: Flow = _US_EU,
) -> None:
    """Create a source topic with *count* records, and wait for their copies."""
    source = lab.cluster(flow.source)
    source.admin.create_topic(topic, partitions, configs)
    produce(source.librdkafka(), topic, Load(count))
    wait_for(lambda: count_copies(lab, topic, flow) == count, f"{count} copies of {topic}")


def send(lab: Lab, flow: Flow, topic: str, count: int, first: int = 0) -> None:
    """Produce numbered records on the source."""
    produce(lab.cluster(flow.source).librdkafka(), topic, Load(count, first=first, value_size=20))
