"""What a cluster reports about its brokers, its user's permissions, its ACLs and its clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from confluent_kafka import TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it has no __all__
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from mm2slo_core.connection_checks.acl_patterns import AclPattern
from mm2slo_core.connection_checks.reader_parity import AclRule
from mm2slo_core.connection_checks.required_permissions import granted_by
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.connection_probe import check_listeners
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.record_producer import RecordProducer
from mm2slo_kafka.topic_metadata import kind_of_failure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient

    from mm2slo_core.connection_checks.check_result import CheckResult
    from mm2slo_core.connection_checks.permission_check import Access
    from mm2slo_core.connection_checks.required_permissions import ResourceKind
    from mm2slo_kafka.record_producer import DeliveryResult

CLOCK_TOPIC = "mm2slo.clock.internal"
_TIMEOUT = 10.0
_NEEDS_DESCRIBE = granted_by("Describe")


class ClusterInspection:
    """Requests to one cluster; *properties* are librdkafka's. Methods raise KafkaOperationError."""

    def __init__(self, alias: str, properties: Mapping[str, str]) -> None:
        self.client = ClusterClient(alias, properties)
        self._properties = properties

    def listeners(self, servers: Iterable[str]) -> list[CheckResult]:
        """Results of a connection to each of *servers*; see `check_listeners`."""
        now = datetime.now(UTC)
        return list(check_listeners(self.client.alias, servers, self._properties, now))

    def brokers(self) -> list[str]:
        """`host:port` of each broker, as advertised to clients."""
        admin = self._admin
        with self.client.handles.errors("connecting"):
            try:
                found = admin.list_topics(timeout=_TIMEOUT).brokers.values()
            finally:
                admin.poll(0)
        hosts = ((str(each.host), each.port) for each in found)
        return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in hosts]

    def topics(self) -> Mapping[str, int]:
        """The partition count of each topic."""
        return self.client.topics().partition_counts

    def cluster_id(self) -> str | None:
        return self.client.topics().cluster_id

    def groups(self) -> frozenset[str]:
        return frozenset(each.group for each in self.client.groups().groups)

    def answers(self, needed: Collection[Access]) -> dict[Access, bool]:
        """What the user may do of *needed*; absent where the cluster does not report it."""
        with self.client.handles.errors("describing authorized operations"):
            described = {kind: self._describe(kind, needed) for kind in ("topic", "group")}
        found: dict[Access, bool] = {}
        for access in needed:
            answer = described[access.kind][access.name]
            failure = answer.exception()
            kind = None if failure is None else kind_of_failure(failure)
            if failure is None and answer.result().authorized_operations is not None:
                allowed = map(_name, answer.result().authorized_operations)
                found[access] = access.operation in set(allowed)
            elif kind is ErrorKind.AUTHORIZATION and access.operation in _NEEDS_DESCRIBE:
                found[access] = False
            elif kind is ErrorKind.UNKNOWN_TOPIC and access.operation == "Describe":
                found[access] = True  # only who may describe a topic learns that it is missing
        for access in set(needed) - found.keys():
            if access.operation == "Create":
                found[access] = self._may_create(access.name)
        configs = [
            each for each in set(needed) - found.keys() if each.operation == "DescribeConfigs"
        ]
        errors = self.client.topic_configs([each.name for each in configs]).errors
        denied = ErrorKind.AUTHORIZATION
        return found | {each: errors.get(each.name) is not denied for each in configs}

    def acls(self) -> list[AclRule]:
        """ACLs of topics and groups, but a DENY for single hosts; empty without an authorizer."""
        operation = "describing ACLs"
        with self.client.handles.errors(operation, answered=True):
            options = {"include_authorized_operations": True, "request_timeout": _TIMEOUT}
            cluster = self._admin.describe_cluster(**options).result()
        if AclOperation.DESCRIBE not in (cluster.authorized_operations or ()):
            # librdkafka 2.16 would return an empty list.
            alias, detail = self.client.alias, "Describe on the cluster is denied"
            kind = ErrorKind.AUTHORIZATION
            raise KafkaOperationError(kind, cluster=alias, operation=operation, detail=detail)
        kinds: dict[ResourceKind, Any] = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP}
        found: list[AclRule] = []
        for kind_name, resource in kinds.items():
            wanted = AclBindingFilter(
                resource,
                None,  # type: ignore[arg-type]  # None means any; missing in the stub
                ResourcePatternType.ANY,
                None,  # type: ignore[arg-type]
                None,  # type: ignore[arg-type]
                AclOperation.ANY,
                AclPermissionType.ANY,
            )
            with self.client.handles.errors(operation):
                bindings = self._admin.describe_acls(wanted, request_timeout=_TIMEOUT).result()
            for each in bindings:
                allows = each.permission_type is AclPermissionType.ALLOW
                if allows or each.host == "*":
                    prefixed = each.resource_pattern_type is ResourcePatternType.PREFIXED
                    pattern = AclPattern(each.name, prefixed)
                    allowed = _name(each.operation)
                    found.append(AclRule(each.principal, kind_name, pattern, allowed, allows))
        return found

    def clock_offset(self) -> tuple[float, float]:
        """Seconds that the cluster's clock is ahead of this host's, and the uncertainty.

        Writes two records to `CLOCK_TOPIC`, which gets the broker's time, and creates it if needed.
        """
        config = {"message.timestamp.type": "LogAppendTime", "retention.ms": "3600000"}
        self.client.create_topic(CLOCK_TOPIC, partitions=1, config=config)
        measured = [(0.0, float("inf"))]
        with RecordProducer(self.client.handles, delivery_timeout_seconds=5.0) as producer:
            for _ in range(2):  # the first one also connects
                results: list[DeliveryResult] = []
                start = time.time()
                producer.send(CLOCK_TOPIC, value=b"", on_delivery=results.append)
                producer.flush(_TIMEOUT)  # longer than the delivery timeout
                end = time.time()
                for result in results:
                    if isinstance(result, KafkaOperationError):
                        raise result
                    middle, half = (start + end) / 2, (end - start) / 2
                    measured.append((result.timestamp_ms / 1000 - middle, half))
        return min(measured, key=lambda each: each[1])

    @property
    def _admin(self) -> AdminClient:
        return self.client.admin()

    def _describe(self, kind: str, needed: Iterable[Access]) -> dict[str, Future[Any]]:
        names = sorted({each.name for each in needed if each.kind == kind})
        options: Any = {"include_authorized_operations": True, "request_timeout": _TIMEOUT}
        if not names:
            return {}
        if kind == "topic":
            return self._admin.describe_topics(TopicCollection(names), **options)
        return self._admin.describe_consumer_groups(names, **options)

    def _may_create(self, topic: str) -> bool:
        """Whether the user may create *topic*, by a request that creates nothing."""
        with self.client.handles.errors("validating the creation of a topic"):
            new = NewTopic(topic, num_partitions=1, replication_factor=-1)
            answer = self._admin.create_topics([new], validate_only=True, request_timeout=_TIMEOUT)
        failure = answer[topic].exception()
        return failure is None or kind_of_failure(failure) is not ErrorKind.AUTHORIZATION


def _name(operation: AclOperation) -> str:
    """As in Kafka's documentation: DESCRIBE_CONFIGS is DescribeConfigs."""
    return str(operation.name).title().replace("_", "")
