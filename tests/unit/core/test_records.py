"""Decoders: golden vectors of Kafka's classes, round trips, and every way to be malformed."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.records.connect_records import (
    ConnectorConfig,
    ConnectorKey,
    ConnectorStatus,
    ConnectState,
    SourceOffset,
    SourceOffsetKey,
    TaskAssignment,
    TaskFencing,
    decode_config,
    decode_status,
)
from mm2slo_core.records.mirror_records import (
    Checkpoint,
    CheckpointKey,
    DecodeError,
    DecodeReason,
    Heartbeat,
    HeartbeatKey,
    OffsetSync,
    Tombstone,
)
from mm2slo_core.topology import TopicPartition

FOO = TopicPartition("foo", 3)
SYNC = OffsetSync(FOO, 500, 498)
CHECKPOINT = Checkpoint("grp", TopicPartition("A.foo", 3), 500, 498, "m")
HEARTBEAT = Heartbeat("A", "B", 1_700_000_000_123)

names = st.text(max_size=40)
offsets = st.integers(0, 2**63 - 1)
partitions = st.builds(TopicPartition, names, st.integers(0, 2**31 - 1))


@pytest.mark.parametrize(
    ("record", "key", "value"),
    [
        (HEARTBEAT, "000141000142", "00000000018bcfe5687b"),
        (
            CHECKPOINT,
            "00036772700005412e666f6f00000003",
            "000000000000000001f400000000000001f200016d",
        ),
        (SYNC, "0003666f6f00000003", "00000000000001f400000000000001f2"),
    ],
)
def test_encoding_equals_bytes_of_kafka_classes(
    record: Heartbeat | Checkpoint | OffsetSync, key: str, value: str
) -> None:
    assert record.encode_key().hex() == key
    assert record.encode_value().hex() == value
    assert record.decode(bytes.fromhex(key), bytes.fromhex(value)) == record


@given(partitions, offsets, offsets)
def test_offset_sync_round_trips(partition: TopicPartition, upstream: int, downstream: int) -> None:
    sync = OffsetSync(partition, upstream, downstream)
    assert OffsetSync.decode(sync.encode_key(), sync.encode_value()) == sync


@given(names, partitions, offsets, offsets, names)
def test_checkpoint_round_trips(
    group: str, partition: TopicPartition, upstream: int, downstream: int, metadata: str
) -> None:
    checkpoint = Checkpoint(group, partition, upstream, downstream, metadata)
    assert Checkpoint.decode(checkpoint.encode_key(), checkpoint.encode_value()) == checkpoint


@given(names, names, st.integers(-(2**63), 2**63 - 1))
def test_heartbeat_round_trips(source: str, target: str, timestamp: int) -> None:
    heartbeat = Heartbeat(source, target, timestamp)
    assert Heartbeat.decode(heartbeat.encode_key(), heartbeat.encode_value()) == heartbeat


@given(names, names, partitions, offsets)
def test_source_offset_round_trips(
    connector: str, cluster: str, partition: TopicPartition, offset: int
) -> None:
    record = SourceOffset(connector, cluster, partition, offset)
    assert SourceOffset.decode(record.encode_key(), record.encode_value()) == record
    assert record.next_offset == offset + 1


def test_null_value_decodes_to_tombstone_with_key() -> None:
    source_offset = SourceOffset("c", "A", FOO, 1)
    assert OffsetSync.decode(SYNC.encode_key(), None) == Tombstone(FOO)
    assert Checkpoint.decode(CHECKPOINT.encode_key(), None) == Tombstone(
        CheckpointKey("grp", TopicPartition("A.foo", 3))
    )
    assert Heartbeat.decode(HEARTBEAT.encode_key(), None) == Tombstone(HeartbeatKey("A", "B"))
    assert SourceOffset.decode(source_offset.encode_key(), None) == Tombstone(
        SourceOffsetKey("c", "A", FOO)
    )
    assert decode_status(b"status-task-c-0", None) == Tombstone(ConnectorKey("c", 0))
    assert decode_config(b"connector-c", None) == Tombstone(ConnectorKey("c", None))


DECODERS: tuple[Callable[[bytes | None, bytes | None], Any], ...] = (
    OffsetSync.decode,
    Checkpoint.decode,
    Heartbeat.decode,
    SourceOffset.decode,
    decode_status,
    decode_config,
)


@pytest.mark.parametrize("decode", DECODERS)
def test_null_key_raises_decode_error(
    decode: Callable[[bytes | None, bytes | None], Any],
) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(None, b"")
    assert caught.value.reason is DecodeReason.NULL_KEY


@pytest.mark.parametrize("decode", DECODERS)
@given(key=st.binary(max_size=60), value=st.binary(max_size=60))
def test_random_bytes_decode_or_raise_decode_error(
    decode: Callable[[bytes | None, bytes | None], Any], key: bytes, value: bytes
) -> None:
    try:
        decode(key, value)
    except DecodeError as error:
        assert error.reason in DecodeReason  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize("record", [SYNC, CHECKPOINT, HEARTBEAT])
def test_truncated_record_raises_decode_error_truncated(
    record: OffsetSync | Checkpoint | Heartbeat,
) -> None:
    key, value = record.encode_key(), record.encode_value()
    for cut in range(len(key)):
        with pytest.raises(DecodeError) as caught:
            record.decode(key[:cut], value)
        assert caught.value.reason is DecodeReason.TRUNCATED
    for cut in range(len(value)):
        with pytest.raises(DecodeError) as caught:
            record.decode(key, value[:cut])
        assert caught.value.reason is DecodeReason.TRUNCATED


@pytest.mark.parametrize("record", [SYNC, CHECKPOINT, HEARTBEAT])
def test_trailing_bytes_raise_decode_error(
    record: OffsetSync | Checkpoint | Heartbeat,
) -> None:
    key, value = record.encode_key(), record.encode_value()
    for pair in ((key + b"\0", value), (key, value + b"\0")):
        with pytest.raises(DecodeError) as caught:
            record.decode(*pair)
        assert caught.value.reason is DecodeReason.TRAILING_BYTES


@pytest.mark.parametrize(
    ("decode", "key", "value", "reason"),
    [
        (Checkpoint.decode, CHECKPOINT.encode_key(), b"\0\1" + b"\0" * 18, "unknown_version"),
        (Checkpoint.decode, CHECKPOINT.encode_key(), b"\0\1", "unknown_version"),
        (Heartbeat.decode, HEARTBEAT.encode_key(), b"\0\1" + b"\0" * 8, "unknown_version"),
        (Heartbeat.decode, HEARTBEAT.encode_key(), b"\0\1" + b"\0" * 99, "unknown_version"),
        (OffsetSync.decode, b"\0\1\xff\0\0\0\0", SYNC.encode_value(), "invalid_utf8"),
        (OffsetSync.decode, b"\xff\xff\0\0\0\0", SYNC.encode_value(), "unexpected_shape"),
        (OffsetSync.decode, b"\0\1a\xff\0\0\0", SYNC.encode_value(), "unexpected_shape"),
        (OffsetSync.decode, SYNC.encode_key(), b"\xff" + b"\0" * 15, "unexpected_shape"),
        (SourceOffset.decode, b"[", b"{}", "invalid_json"),
        (SourceOffset.decode, b"[" * 100_000, b"{}", "invalid_json"),
        (SourceOffset.decode, b"\xff", b"{}", "invalid_utf8"),
        (SourceOffset.decode, b"{}", b"{}", "unexpected_shape"),
        (SourceOffset.decode, b"[1,{}]", b"{}", "unexpected_shape"),
        (decode_status, b"status-task-c", b"{}", "unexpected_shape"),
        (decode_status, b"status-connector-c", b"null", "unexpected_shape"),
        (decode_config, b"task-c-0", b'{"properties":[]}', "unexpected_shape"),
    ],
)
def test_malformed_record_raises_decode_error_with_detail(
    decode: Callable[[bytes, bytes], Any], key: bytes, value: bytes, reason: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(key, value)
    assert caught.value.reason == reason


@pytest.mark.parametrize("offset", ["1", "-1", "true", "null", '"5"', "1.5", "[]"])
def test_source_offset_must_be_non_negative_integer(offset: str) -> None:
    key = SourceOffset("c", "A", FOO, 0).encode_key()
    value = f'{{"offset":{offset}}}'.encode()
    if offset == "1":
        assert SourceOffset.decode(key, value) == SourceOffset("c", "A", FOO, 1)
        return
    with pytest.raises(DecodeError) as caught:
        SourceOffset.decode(key, value)
    assert caught.value.reason is DecodeReason.UNEXPECTED_SHAPE


@pytest.mark.parametrize(
    "key",
    [
        '["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]',
        '["MirrorCheckpointConnector",{"partition":0,"topic":"A.foo","group":"g"}]',
        '["file-source",{"filename":"/tmp/x"}]',
        '["odd",null]',
    ],
)
def test_source_offset_of_other_connector_decodes_to_none(key: str) -> None:
    assert SourceOffset.decode(key.encode(), b'{"offset":0}') is None


def test_source_offset_key_fields_decode_in_any_order() -> None:
    key = b'["us->eu.MirrorSourceConnector",{"topic":"foo", "cluster":"us","partition":3}]'
    assert SourceOffset.decode(key, b'{"offset":123}') == SourceOffset(
        "us->eu.MirrorSourceConnector", "us", FOO, 123
    )


def test_connector_and_task_status_decode() -> None:
    value = json.dumps(
        {"state": "FAILED", "trace": "Boom\n at x", "worker_id": "A->B", "generation": 7}
    ).encode()
    connector = decode_status(b"status-connector-MirrorSourceConnector", value)
    task = decode_status(b"status-task-A->B.MirrorSourceConnector-12", value)
    assert connector == ConnectorStatus("MirrorSourceConnector", None, ConnectState.FAILED)
    assert task == ConnectorStatus("A->B.MirrorSourceConnector", 12, ConnectState.FAILED)
    assert "Boom" not in repr(connector)
    assert decode_status(b"status-topic-foo:connector-c", b"{}") is None


def test_unknown_connect_state_raises_decode_error() -> None:
    value = b'{"state":"DANCING","trace":null,"worker_id":"w","generation":1}'
    with pytest.raises(DecodeError, match="DANCING"):
        decode_status(b"status-connector-c", value)


def test_connector_config_keeps_only_safe_settings() -> None:
    properties = {
        "topics": "orders.*",
        "groups.exclude": "x-.*",
        "source.cluster.sasl.jaas.config": "password='hunter2'",
        "target.cluster.ssl.key.password": "hunter2",
        "custom": "hunter2",
    }
    value = json.dumps({"properties": properties}).encode()
    config = decode_config(b"connector-MirrorSourceConnector", value)
    assert config == ConnectorConfig(
        "MirrorSourceConnector", {"topics": "orders.*", "groups.exclude": "x-.*"}
    )
    assert "hunter2" not in repr(config)


def test_malformed_configuration_error_omits_secrets() -> None:
    for value in (b'{"password":"hunter2"', b'"hunter2"', b'{"properties":"hunter2"}', b"hunter2"):
        with pytest.raises(DecodeError) as caught:
            decode_config(b"connector-c", value)
        assert "hunter2" not in str(caught.value)
        assert "hunter2" not in repr(caught.value.__cause__)


def test_task_assignments_decode() -> None:
    def value(**properties: str) -> bytes:
        return json.dumps({"properties": properties}).encode()

    partitions = value(**{"task.assigned.partitions": "foo-3,with-dash-0", "sasl.password": "x"})
    assert decode_config(b"task-MirrorSourceConnector-1", partitions) == TaskAssignment(
        "MirrorSourceConnector", 1, (FOO, TopicPartition("with-dash", 0))
    )
    groups = value(**{"task.assigned.groups": "g1,g2"})
    assert decode_config(b"task-MirrorCheckpointConnector-0", groups) == TaskAssignment(
        "MirrorCheckpointConnector", 0, ()
    )
    assert decode_config(b"task-c-0", value()) == TaskAssignment("c", 0, ())


@pytest.mark.parametrize("key", [b"commit-c", b"target-state-c", b"session-key", b"other"])
def test_other_configuration_records_decode_to_none(key: bytes) -> None:
    assert decode_config(key, b'{"key":"secret"}') is None


def test_task_fencing_of_exactly_once_worker_names_connector() -> None:
    assert decode_config(b"tasks-fencing-c", b'{"tasks":1}') == TaskFencing("c")
    assert decode_config(b"tasks-fencing-c", None) is None


def test_encode_string_too_long_raises_value_error() -> None:
    with pytest.raises(ValueError, match="string has 32768 bytes"):
        Heartbeat("a" * 32_768, "B", 0).encode_key()
