"""Permissions and ACLs from prepared answers of the admin client."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it has no __all__
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from mm2slo_core.kafka_permissions import (
    AclPattern,
    AclRule,
    Operation,
    RequiredAccess,
    ResourceKind,
)
from mm2slo_kafka.cluster_inspection import ClusterInspection
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

DENIED = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
MISSING = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
SLOW = KafkaException(KafkaError(KafkaError._TIMED_OUT))


def answered(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(value, Exception):
        future.set_exception(value)
    else:
        future.set_result(value)
    return future


class FakeAdmin:
    """Answers per name: authorized operations, None for an old broker, or an error."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.validated: list[str] = []

    def describe_topics(self, topics: Any, **options: Any) -> dict[str, Future[Any]]:
        return self.describe_consumer_groups(topics.topic_names, **options)

    def describe_consumer_groups(self, names: Any, **options: Any) -> dict[str, Future[Any]]:
        assert options["include_authorized_operations"] is True
        found = {name: self.answers[name] for name in names}
        return {
            name: answered(
                each if isinstance(each, Exception) else SimpleNamespace(authorized_operations=each)
            )
            for name, each in found.items()
        }

    def create_topics(self, topics: Any, **options: Any) -> dict[str, Future[Any]]:
        assert options["validate_only"] is True
        self.validated += [each.topic for each in topics]
        return {each.topic: answered(DENIED if "no" in each.topic else None) for each in topics}

    def describe_cluster(self, **options: Any) -> Future[Any]:
        assert options["include_authorized_operations"] is True
        return answered(SimpleNamespace(authorized_operations=self.answers["CLUSTER"]))

    def describe_acls(self, wanted: Any, **_options: Any) -> Future[Any]:
        return answered(self.answers.get(wanted.restype.name, []))


@pytest.fixture
def inspection(monkeypatch: pytest.MonkeyPatch) -> ClusterInspection:
    made = ClusterInspection("us", {"bootstrap.servers": "127.0.0.1:1"})
    errors = {"closed": ErrorKind.AUTHORIZATION}
    monkeypatch.setattr(made.client, "topic_configs", lambda _names: SimpleNamespace(errors=errors))
    return made


def answers(
    inspection: ClusterInspection,
    kind: ResourceKind,
    name: str,
    operations: list[Operation],
    answer: Any,
) -> dict[Operation, bool]:
    admin = FakeAdmin(**{name: answer})
    inspection.client.admin = lambda: admin  # type: ignore[assignment, method-assign, return-value]
    found = inspection.answers([RequiredAccess(kind, name, operation) for operation in operations])
    return {access.operation: allowed for access, allowed in found.items()}


READ_DESCRIBE = [AclOperation.READ, AclOperation.DESCRIBE]


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        ("open", READ_DESCRIBE, {"Read": True, "Write": False, "DescribeConfigs": False}),
        ("open", [AclOperation.DESCRIBE_CONFIGS], {"Read": False, "DescribeConfigs": True}),
        ("open", DENIED, {"Read": False, "Write": False, "DescribeConfigs": True}),
        ("closed", DENIED, {"Read": False, "DescribeConfigs": False}),
        ("missing", MISSING, {"Describe": True, "DescribeConfigs": True}),
        ("open", SLOW, {"DescribeConfigs": True}),
        ("open", None, {"DescribeConfigs": True}),
        ("no", DENIED, {"Create": False}),
        ("new", MISSING, {"Create": True}),
    ],
)
def test_answers_of_a_topic(
    inspection: ClusterInspection, name: str, answer: Any, expected: dict[Operation, bool]
) -> None:
    asked: list[Operation] = [*expected]
    if answer in (MISSING, SLOW, None):
        asked.append("Read")  # not known without a description
    assert answers(inspection, "topic", name, asked, answer) == expected


def test_answers_of_a_group(inspection: ClusterInspection) -> None:
    asked: list[Operation] = ["Read", "Describe"]
    found = answers(inspection, "group", "shop", asked, [AclOperation.DESCRIBE])
    assert found == {"Read": False, "Describe": True}
    denied = KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    found = answers(inspection, "group", "shop", asked, denied)
    assert found == {"Read": False, "Describe": False}


def binding(
    name: str, permission: AclPermissionType, host: str, *, prefixed: bool = False
) -> AclBinding:
    pattern = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
    resource, operation = ResourceType.TOPIC, AclOperation.DESCRIBE_CONFIGS
    return AclBinding(resource, name, pattern, "User:app", host, operation, permission)


def test_acls_leave_out_denials_for_single_hosts(inspection: ClusterInspection) -> None:
    allow, deny = AclPermissionType.ALLOW, AclPermissionType.DENY
    bindings = [
        binding("a", allow, "10.0.0.1", prefixed=True),
        binding("b", deny, "*"),
        binding("c", deny, "10.0.0.1"),
    ]
    admin = FakeAdmin(CLUSTER=[AclOperation.DESCRIBE], TOPIC=bindings)
    inspection.client.admin = lambda: admin  # type: ignore[assignment, method-assign, return-value]
    assert inspection.client.acls() == [
        AclRule("User:app", "topic", AclPattern("a", prefixed=True), "DescribeConfigs"),
        AclRule("User:app", "topic", AclPattern("b"), "DescribeConfigs", allows=False),
    ]


@pytest.mark.parametrize("operations", [None, [AclOperation.CREATE]])
def test_acls_raise_without_describe_on_the_cluster(
    inspection: ClusterInspection, operations: list[AclOperation] | None
) -> None:
    admin = FakeAdmin(CLUSTER=operations)
    inspection.client.admin = lambda: admin  # type: ignore[assignment, method-assign, return-value]
    with pytest.raises(KafkaOperationError) as caught:
        inspection.client.acls()
    assert caught.value.kind is ErrorKind.AUTHORIZATION
