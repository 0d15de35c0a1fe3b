"""Encodings equal those of Kafka's serialisers, byte for byte."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.records.connect_records import SourceOffset
from mm2slo_core.records.mirror_records import Checkpoint, Heartbeat, OffsetSync
from mm2slo_core.topology import TopicPartition

pytestmark = pytest.mark.xdist_group("spark")

names = st.text(max_size=30)
longs = st.integers(0, 2**63 - 1)
partitions = st.builds(TopicPartition, names, st.integers(0, 2**31 - 1))


def encoded(record: OffsetSync | Checkpoint | Heartbeat) -> list[bytes]:
    return [record.encode_key(), record.encode_value()]


@given(partition=partitions, upstream=longs, downstream=longs)
def test_offset_sync_encoding_equals_kafka(
    probe: Any, partition: TopicPartition, upstream: int, downstream: int
) -> None:
    theirs = list(probe("offsetSync", *partition, upstream, downstream))
    assert encoded(OffsetSync(partition, upstream, downstream)) == theirs


@given(group=names, partition=partitions, upstream=longs, downstream=longs, metadata=names)
def test_checkpoint_encoding_equals_kafka(
    probe: Any,
    *,
    group: str,
    partition: TopicPartition,
    upstream: int,
    downstream: int,
    metadata: str,
) -> None:
    theirs = list(probe("checkpoint", group, *partition, upstream, downstream, metadata))
    assert encoded(Checkpoint(group, partition, upstream, downstream, metadata)) == theirs


@given(source=names, target=names, timestamp=st.integers(-(2**63), 2**63 - 1))
def test_heartbeat_encoding_equals_kafka(
    probe: Any, source: str, target: str, timestamp: int
) -> None:
    theirs = list(probe("heartbeat", source, target, timestamp))
    assert encoded(Heartbeat(source, target, timestamp)) == theirs


@given(connector=names, cluster=names, partition=partitions, offset=longs)
def test_source_offset_encoding_equals_json_converter(
    probe: Any, connector: str, cluster: str, partition: TopicPartition, offset: int
) -> None:
    key, value = probe("sourceOffset", connector, cluster, *partition, offset)
    expected = SourceOffset(connector, cluster, partition, offset)
    assert SourceOffset.decode(key, value) == expected
    assert expected.encode_value() == value
