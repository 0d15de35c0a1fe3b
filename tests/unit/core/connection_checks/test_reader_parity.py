"""Readers of the source and what they may read on the target."""

from mm2slo_core.kafka_permissions import AclPattern, AclRule, ReaderParity, reader_parity

COPIES = {"orders": "us.orders", "pay": "us.pay"}
GROUPS = ["shop", "billing"]


def topic(
    who: str, name: AclPattern | str, operation: str = "Read", *, allows: bool = True
) -> AclRule:
    pattern = AclPattern(name) if isinstance(name, str) else name
    return AclRule(f"User:{who}", "topic", pattern, operation, allows)


def group(who: str, name: str, operation: str = "Read") -> AclRule:
    return AclRule(f"User:{who}", "group", AclPattern(name), operation)


READER = [topic("app", "orders"), group("app", "shop")]


def parity(
    source: list[AclRule], target: list[AclRule], counterparts: dict[str, str] | None = None
) -> list[ReaderParity]:
    return list(reader_parity(source, target, COPIES, GROUPS, counterparts or {}))


def test_reader_without_rules_on_target_is_denied_copy_and_group() -> None:
    assert parity(READER, []) == [
        ReaderParity("User:app", "User:app", ("topic us.orders", "group shop"))
    ]


def test_reader_of_copy_and_group_has_parity() -> None:
    target = [topic("app", AclPattern.parse("us.*")), group("app", "*", "All")]
    assert parity(READER, target) == [ReaderParity("User:app", "User:app", ())]


def test_counterpart_has_another_name() -> None:
    target = [topic("app-dr", "us.orders"), group("app-dr", "shop")]
    assert parity(READER, target, {"User:app": "User:app-dr"}) == [
        ReaderParity("User:app", "User:app-dr", ())
    ]


def test_rules_of_all_users_apply_and_deny_wins() -> None:
    target = [topic("*", "*"), group("*", "shop"), topic("app", "us.orders", "All", allows=False)]
    assert parity(READER, target) == [ReaderParity("User:app", "User:app", ("topic us.orders",))]
    assert parity(READER, target[:2]) == [ReaderParity("User:app", "User:app", ())]


def test_all_topics_of_a_reader_are_compared() -> None:
    source = [topic("app", "*", "All"), group("app", "shop")]
    target = [topic("app", "us.pay"), group("app", "shop")]
    assert parity(source, target) == [ReaderParity("User:app", "User:app", ("topic us.orders",))]


def test_who_may_not_read_both_topic_and_group_is_no_reader() -> None:
    source = [
        topic("producer", "orders", "Write"),
        group("producer", "shop"),
        topic("mirrormaker", "orders"),
        group("mirrormaker", "shop", "Describe"),
        topic("other", "unreplicated"),
        group("other", "shop"),
        topic("denied", "orders"),
        topic("denied", "orders", allows=False),
        group("denied", "shop"),
    ]
    assert parity(source, []) == []
