"""Fixtures that call Kafka's classes: one Java process per session, no broker."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka_jvm import running_jvm

_PACKAGE = "org.apache.kafka.connect.mirror"

# Compiled in the Java process by Javassist, a dependency of Connect, so no javac is needed. As part
# of Kafka's package it can call package-private methods.
_PROBE = (
    """
    private static java.util.List pair(byte[] key, byte[] value) {
        return java.util.Arrays.asList(new Object[] {key, value});
    }
    """,
    """
    private static void feed(OffsetSyncStore store, java.nio.ByteBuffer in, int count) {
        org.apache.kafka.common.TopicPartition partition =
            new org.apache.kafka.common.TopicPartition("foo", 3);
        for (int i = 0; i < count; i++) {
            OffsetSync sync = new OffsetSync(partition, in.getLong(), in.getLong());
            store.handleRecord(new org.apache.kafka.clients.consumer.ConsumerRecord(
                "syncs", 0, 0L, sync.recordKey(), sync.recordValue()));
        }
    }
    """,
    """
    public static byte[] translate(byte[] cases, int answers) {
        org.apache.kafka.common.TopicPartition partition =
            new org.apache.kafka.common.TopicPartition("foo", 3);
        java.nio.ByteBuffer in = java.nio.ByteBuffer.wrap(cases);
        java.nio.ByteBuffer out = java.nio.ByteBuffer.allocate(answers * 8);
        while (in.hasRemaining()) {
            OffsetSyncStore store = new OffsetSyncStore();
            store.initializationMustReadToEnd = in.getInt() == 1;
            int before = in.getInt();
            int after = in.getInt();
            int queries = in.getInt();
            feed(store, in, before);
            store.readToEnd = true;
            feed(store, in, after);
            for (int i = 0; i < queries; i++) {
                java.util.OptionalLong found =
                    store.translateDownstream("group", partition, in.getLong());
                out.putLong(found.isPresent() ? found.getAsLong() : -2L);
            }
        }
        return out.array();
    }
    """,
    """
    public static java.util.List offsetSync(String topic, int partition, long up, long down) {
        OffsetSync sync = new OffsetSync(
            new org.apache.kafka.common.TopicPartition(topic, partition), up, down);
        return pair(sync.recordKey(), sync.recordValue());
    }
    """,
    """
    public static java.util.List checkpoint(
            String group, String topic, int partition, long up, long down, String metadata) {
        Checkpoint checkpoint = new Checkpoint(group,
            new org.apache.kafka.common.TopicPartition(topic, partition), up, down, metadata);
        return pair(checkpoint.recordKey(), checkpoint.recordValue());
    }
    """,
    """
    public static java.util.List heartbeat(String source, String target, long timestamp) {
        Heartbeat heartbeat = new Heartbeat(source, target, timestamp);
        return pair(heartbeat.recordKey(), heartbeat.recordValue());
    }
    """,
    """
    public static java.util.List sourceOffset(
            String connector, String cluster, String topic, int partition, long offset) {
        org.apache.kafka.connect.json.JsonConverter converter =
            new org.apache.kafka.connect.json.JsonConverter();
        converter.configure(java.util.Collections.singletonMap("schemas.enable", "false"), true);
        java.util.Map where = MirrorUtils.wrapPartition(
            new org.apache.kafka.common.TopicPartition(topic, partition), cluster);
        java.util.List key = java.util.Arrays.asList(new Object[] {connector, where});
        return pair(
            converter.fromConnectData("offsets", null, key),
            converter.fromConnectData("offsets", null, MirrorUtils.wrapOffset(offset)));
    }
    """,
    """
    public static boolean[] selects(
            String source, String target, ReplicationPolicy policy, TopicFilter filter,
            String topic) {
        MirrorSourceConnector connector = new MirrorSourceConnector(
            new SourceAndTarget(source, target), policy, filter,
            new DefaultConfigPropertyFilter());
        return new boolean[] {connector.isCycle(topic), connector.shouldReplicateTopic(topic)};
    }
    """,
)


@pytest.fixture(scope="session")
def jvm() -> Iterator[Any]:
    """Start a Java process with Kafka 4.1 and Connect's mirror on its class path."""
    with running_jvm() as view:
        yield view


@pytest.fixture(scope="session")
def probe(jvm: Any) -> Callable[..., Any]:
    """Call a static method by name inside Kafka's package."""
    kafka_class = jvm.java.lang.Class.forName(f"{_PACKAGE}.OffsetSync")
    pool = jvm.javassist.ClassPool.getDefault()
    pool.importPackage(_PACKAGE)
    compiled = pool.makeClass(f"{_PACKAGE}.SpecProbe")
    for source in _PROBE:
        compiled.addMethod(jvm.javassist.CtNewMethod.make(source, compiled))
    compiled.toClass(kafka_class)
    methods = getattr(jvm, f"{_PACKAGE}.SpecProbe")
    return lambda method, *arguments: getattr(methods, method)(*arguments)
