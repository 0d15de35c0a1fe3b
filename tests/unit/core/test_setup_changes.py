"""What changes when one configuration of MirrorMaker 2 replaces another."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.mm2_config.connect_json import read_connect_json
from mm2slo_core.mm2_config.mirror_setup import MirrorSetup
from mm2slo_core.mm2_config.mm2_properties import read_properties
from mm2slo_core.mm2_config.setup_changes import Change, Effect, SourceNames, compare_setups
from mm2slo_core.mm2_config.strimzi_setup import read_strimzi

BASE = """
clusters = us, eu
us.bootstrap.servers = us-1:9092, us-2:9092
eu.bootstrap.servers = eu-1:9092
us->eu.enabled = true
eu->us.emit.heartbeats.enabled = false
us.sasl.jaas.config = x.PlainLoginModule required password="hunter2";
"""
STRIMZI = """
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {name: mirror}
spec:
  replicas: 1
  target:
    alias: eu
    bootstrapServers: eu-1:9092
    groupId: mirror
    configStorageTopic: mirror-configs
    offsetStorageTopic: mirror-offsets
    statusStorageTopic: mirror-status
  mirrors:
    - source: {alias: us, bootstrapServers: "us-1:9092"}
      sourceConnector: {}
      checkpointConnector: {}
"""
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
WORKER = f"""
group.id = us-mm2
offset.storage.topic = mm2-offsets.us.internal
status.storage.topic = mm2-status.us.internal
config.storage.topic = mm2-configs.us.internal
key.converter = {BYTES}
value.converter = {BYTES}
header.converter = {BYTES}
"""
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
TOPICS = frozenset({"orders", "pay", "app.internal", "us.old"})


def dedicated(more: str = "", text: str = BASE) -> list[MirrorSetup]:
    return [read_properties("mm2.properties", f"{text}\n{more}".encode())]


def connect_json(prefix: str = "", worker: str = WORKER) -> list[MirrorSetup]:
    connectors = [
        {
            "name": f"{prefix}{kind}",
            "config": {
                "connector.class": f"org.apache.kafka.connect.mirror.{kind}",
                "source.cluster.alias": "us",
                "target.cluster.alias": "eu",
                "source.cluster.bootstrap.servers": "us-2:9092",
                "target.cluster.bootstrap.servers": "eu-1:9092",
            },
        }
        for kind in (
            "MirrorSourceConnector",
            "MirrorCheckpointConnector",
            "MirrorHeartbeatConnector",
        )
    ]
    files = [("connectors.json", json.dumps(connectors))]
    return [read_connect_json(files, ("worker.properties", worker.encode()))]


def changes(
    old: Sequence[MirrorSetup],
    new: Sequence[MirrorSetup],
    topics: frozenset[str] | None = None,
    groups: frozenset[str] | None = None,
    versions: tuple[str | None, str | None] = (None, None),
) -> dict[str, list[tuple[Effect, str, tuple[str, ...] | None]]]:
    flows, notes = compare_setups(old, new, {"us": SourceNames(topics, groups)}, versions)
    assert notes == []
    return {
        label: [(each.effect, each.what, each.names) for each in found]
        for label, found in flows.items()
    }


def test_same_flows_with_the_same_names_in_another_form_do_not_differ() -> None:
    assert changes(dedicated(), connect_json()) == {}
    assert changes(connect_json(), dedicated(), TOPICS, frozenset({"shop"})) == {}


def test_dedicated_mode_to_strimzi_copies_everything_again() -> None:
    flows, notes = compare_setups(
        dedicated(), read_strimzi("mirror.yaml", STRIMZI), {"us": SourceNames(TOPICS)}
    )
    copied, heartbeats = flows.pop("us->eu")
    assert (flows, notes) == ({}, [])
    assert copied == Change(
        Effect.COPIED_AGAIN,
        "connector MirrorSourceConnector -> us->eu.MirrorSourceConnector; "
        "offsets topic mm2-offsets.us.internal -> mirror-offsets",
        "without positions, all records that us still has are copied again; after a failover, "
        "groups read them again",
        "to keep the positions, stop OLD, then create us->eu.MirrorSourceConnector with "
        "state: stopped and set them by alterOffsets (Strimzi 0.44 and newer)",
        ("app.internal", "orders", "pay", "us.old"),
    )
    assert heartbeats.what == "heartbeats are no longer written to eu"


@pytest.mark.parametrize(
    ("old", "new", "what", "action"),
    [
        (
            dedicated(), connect_json("new-"),
            "connector MirrorSourceConnector -> new-MirrorSourceConnector",
            "use name: MirrorSourceConnector in NEW",
        ),
        (
            dedicated(), connect_json(worker=WORKER.replace("mm2-offsets.us.internal", "offsets")),
            "offsets topic mm2-offsets.us.internal -> offsets",
            "use offset.storage.topic: mm2-offsets.us.internal in NEW",
        ),
        (
            dedicated(), dedicated("eu.offset.storage.topic = offsets"),
            "offsets topic mm2-offsets.us.internal -> offsets",
            "use eu.offset.storage.topic: mm2-offsets.us.internal in NEW",
        ),
        (
            connect_json("old-"), dedicated(),
            "connector old-MirrorSourceConnector -> MirrorSourceConnector",
            "write them to the new offsets topic under the new key; "
            "dedicated mode has no API for it",
        ),
        (
            read_strimzi("a", STRIMZI),
            read_strimzi("b", STRIMZI.replace("mirror-offsets", "offsets-2")),
            "offsets topic mirror-offsets -> offsets-2",
            "use offsetStorageTopic: mirror-offsets in NEW",
        ),
    ],
)  # fmt: skip
def test_changed_key_of_positions_copies_everything_again(
    old: list[MirrorSetup], new: list[MirrorSetup], what: str, action: str
) -> None:
    (found,) = compare_setups(old, new, {})[0]["us->eu"]
    assert (found.effect, found.what, found.names) == (Effect.COPIED_AGAIN, what, None)
    assert found.action == f"to keep the positions, stop OLD, then {action}"


def test_own_offsets_topic_of_a_connector_keeps_its_positions() -> None:
    new = dedicated("us->eu.offsets.storage.topic = own")
    newer = dedicated("us->eu.offsets.storage.topic = own\neu.offset.storage.topic = other")
    assert changes(dedicated(), new) == {}
    assert changes(new, newer) == {}
    assert [each[0] for each in changes(dedicated(), newer)["us->eu"]] == [Effect.COPIED_AGAIN]


def test_new_alias_of_the_source_copies_everything_again_under_other_names() -> None:
    new = dedicated(text=re.sub(r"\bus(?=[.,]|->)", "usa", BASE))
    assert changes(dedicated(), new, TOPICS - {"us.old"}) == {
        "us->eu, now usa->eu": [
            (
                Effect.COPIED_AGAIN,
                "offsets topic mm2-offsets.us.internal -> mm2-offsets.usa.internal; "
                "source alias us -> usa",
                ("app.internal", "orders", "pay"),
            ),
            (
                Effect.RENAMED,
                "3 of 3 copies",
                (
                    "us.app.internal -> usa.app.internal",
                    "us.orders -> usa.orders",
                    "us.pay -> usa.pay",
                ),
            ),
            (
                Effect.SETTING,
                "checkpoints: us.checkpoints.internal -> usa.checkpoints.internal",
                None,
            ),
        ]
    }


def test_policy_renames_copies_from_the_current_position_on() -> None:
    old, new = dedicated(), dedicated(f"replication.policy.class = {IDENTITY}")
    (found,) = compare_setups(old, new, {})[0]["us->eu"]
    assert found == Change(
        Effect.RENAMED,
        "us.TOPIC -> TOPIC",
        "existing copies stay, without new records; the new copies start at the current position",
        "move consumers; to copy all records again, reset the offsets of the connector",
    )
    assert changes(old, new, frozenset({"orders", "heartbeats"})) == {
        "us->eu": [(Effect.RENAMED, "1 of 2 copies", ("us.orders -> orders",))]
    }


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "us->eu.offset.lag.max = 0", ["offset.lag.max: 100 -> 0"]),
        ("", "us->eu.offset.lag.max = 100\nus->eu.topics = .*", []),
        ("us->eu.topics = a, b", "us->eu.topics = b,a", []),
        ("", "tasks.max = 4", ["checkpoint tasks.max: 1 -> 4", "tasks.max: 1 -> 4"]),
        ("", "us->eu.groups = shop", ["groups: .* -> shop"]),
        ("us->eu.sync.group.offsets.enabled=TRUE", "sync.group.offsets.enabled = true", []),
        ("", "sync.group.offsets.enabled = true", ["sync.group.offsets.enabled: false -> true"]),
        ("", "emit.checkpoints.enabled = false", ["the groups of the flow"]),
        ("", "us->eu.replication.factor = 3", ["replication.factor: 2 -> 3"]),
        (
            "", "eu.exactly.once.source.support = enabled\neu.offset.flush.interval.ms = 10000",
            [
                "exactly.once.source.support: disabled -> enabled",
                "offset.flush.interval.ms: 60000 -> 10000",
            ],
        ),
        (
            "", "us.consumer.isolation.level = read_committed",
            ["source.consumer.isolation.level: read_uncommitted -> read_committed"],
        ),
        (
            "us.consumer.isolation.level = read_committed",
            "us->eu.consumer.isolation.level = read_committed", [],
        ),
        ("", "eu.producer.acks = 1", ["producer.override.acks: not set -> 1"]),
        ("eu.producer.acks = 1", "us->eu.producer.override.acks = 1", []),
        (
            "", "offset-syncs.topic.location = target",
            [
                "offset syncs: mm2-offset-syncs.eu.internal on the source -> "
                "mm2-offset-syncs.us.internal on the target"
            ],
        ),
        (
            "", "replication.policy.separator = _",
            [
                "us.TOPIC -> us_TOPIC",
                "checkpoints: us.checkpoints.internal -> us_checkpoints_internal",
                "offset syncs: mm2-offset-syncs.eu.internal on the source -> "
                "mm2-offset-syncs_eu_internal on the source",
            ],
        ),
        ("", "us->eu.transforms = mask\nus->eu.transforms.mask.key = hunter2",
         ["transforms", "transforms.mask.key"]),
        ("", "eu->us.emit.heartbeats.enabled = true", ["heartbeats are written to us"]),
        ("", "eu.bootstrap.servers = eu-9:1", ["target servers: eu-1:9092 -> eu-9:1"]),
        ("", "us.bootstrap.servers = us-2:9092", []),
        ("", "us.ssl.truststore.password = hunter2\nadmin.timeout.ms = 5\neu.client.id = x", []),
    ],
)  # fmt: skip
def test_settings_with_an_effect_are_compared(old: str, new: str, expected: list[str]) -> None:
    forward = changes(dedicated(old), dedicated(new))
    assert [what for found in forward.values() for _, what, _ in found] == expected
    backward = changes(dedicated(new), dedicated(old))
    assert [len(found) for found in backward.values()] == [len(f) for f in forward.values()]
    assert "hunter2" not in repr((forward, backward))


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (("3.9", "4.0"), [(Effect.TOPICS_START, "1 topic", ("app.internal",))]),
        (("4.0", "3.9"), [(Effect.TOPICS_STOP, "1 topic", ("app.internal",))]),
        (("4.3", "4.4"), [(Effect.TOPICS_STOP, "1 topic", ("us.old",))]),
    ],
)
def test_versions_change_what_is_replicated(
    versions: tuple[str, str], expected: list[tuple[Effect, str, tuple[str, ...]]]
) -> None:
    (found,) = changes(dedicated(), dedicated(), TOPICS, versions=versions).values()
    assert [each for each in found if each[0] is not Effect.SETTING] == expected


@pytest.mark.parametrize("items", ["orders,,pay", "orders,", "orders,pay,orders"])
def test_lists_that_the_new_version_refuses_stop_the_flow(items: str) -> None:
    file = dedicated(f"us->eu.topics = {items}")
    (found,) = changes(file, file, versions=("4.1", "4.2")).values()
    (what,) = (each[1] for each in found if each[0] is Effect.FLOW_FAILS)
    assert what.startswith(f"us->eu.topics = {items}; expected ")
    assert changes(file, file, versions=("4.2", "4.3")) == {}
    added = changes([], file, versions=("4.2", "4.2"))["us->eu"]
    assert Effect.FLOW_FAILS in {each[0] for each in added}


def test_versions_without_topics_are_compared_by_patterns() -> None:
    old = dedicated("us->eu.topics.blacklist = secret")
    assert changes(old, old, versions=("3.9", "4.0")) == {
        "us->eu": [
            (Effect.SETTING, "internal topics: *.internal, *-internal -> mm2*.internal", None),
            (Effect.SETTING, r"topics.exclude: secret -> mm2.*\.internal,.*\.replica,__.*", None),
        ]
    }


def test_topics_and_groups_that_start_and_stop_are_named() -> None:
    old, new = dedicated("topics = orders, x\ngroups = a"), dedicated("topics = pay\ngroups = b")
    found = changes(old, new, TOPICS, frozenset("ab"))["us->eu"]
    assert found[:4] == [
        (Effect.TOPICS_START, "1 topic", ("pay",)),
        (Effect.TOPICS_STOP, "1 topic", ("orders",)),
        (Effect.GROUPS_START, "1 group", ("b",)),
        (Effect.GROUPS_STOP, "1 group", ("a",)),
    ]


def test_added_and_removed_flows_name_their_topics() -> None:
    old, new = dedicated("us->eu.enabled = false"), dedicated("us->eu.topics = orders")
    groups = frozenset({"shop"})
    assert changes(old, new, TOPICS, groups) == {
        "us->eu": [
            (Effect.FLOW_ADDED, "us->eu", ("orders",)),
            (Effect.GROUPS_START, "1 group", ("shop",)),
        ]
    }
    assert changes(new, old) == {
        "us->eu": [
            (Effect.FLOW_REMOVED, "us->eu", None),
            (Effect.GROUPS_STOP, "the groups of the flow", None),
        ]
    }


def test_paused_connector_is_a_change() -> None:
    paused = STRIMZI.replace("sourceConnector: {}", "sourceConnector: {state: paused}")
    found = changes(read_strimzi("a", STRIMZI), read_strimzi("b", paused))
    assert found == {"us->eu": [(Effect.SETTING, "source state: running -> paused", None)]}


def test_notes_name_the_assumed_version_and_what_is_not_compared() -> None:
    custom = dedicated("replication.policy.class = com.example.Policy")
    old = [replace(custom[0], kafka_version="3.9.1")]
    flows, notes = compare_setups(old, custom, {"us": SourceNames(TOPICS)})
    assert flows == {}
    assert notes == [
        "only one side states its Kafka version; assumed 3.9.1 for both",
        "mm2.properties:9: names of us->eu are not compared: replication.policy.class: "
        "'com.example.Policy' is a class that mm2slo does not know",
    ]


LINES = st.lists(
    st.sampled_from(
        [
            "us->eu.topics = orders.*, pay",
            "topics.exclude = .*tmp",
            "groups = shop-.*",
            "eu->us.enabled = true",
            "us->eu.enabled = false",
            f"replication.policy.class = {IDENTITY}",
            "replication.policy.separator = _",
            "eu.offset.storage.topic = offsets",
            "emit.checkpoints.enabled = false",
            "tasks.max = 8",
            "eu.exactly.once.source.support = enabled",
            "us->eu.transforms = drop",
            "eu.bootstrap.servers = other:1",
        ]
    ),
    unique=True,
).map("\n".join)
NAMES = st.frozensets(st.sampled_from(["orders.a", "pay", "shop-1", "heartbeats", "a.tmp", "eu.x"]))
OPPOSITE = {
    Effect.FLOW_ADDED: Effect.FLOW_REMOVED,
    Effect.TOPICS_START: Effect.TOPICS_STOP,
    Effect.GROUPS_START: Effect.GROUPS_STOP,
}
OPPOSITE |= {second: first for first, second in OPPOSITE.items()}


@pytest.mark.property
@given(LINES, st.none() | NAMES)
def test_a_setup_does_not_differ_from_itself(lines: str, names: frozenset[str] | None) -> None:
    assert changes(dedicated(lines), dedicated(lines), names, names) == {}


@pytest.mark.property
@given(LINES, LINES, st.none() | NAMES)
def test_swapped_setups_swap_what_starts_and_stops(
    one: str, two: str, names: frozenset[str] | None
) -> None:
    forward, backward = (
        {
            (label, effect, found)
            for label, each in changes(dedicated(old), dedicated(new), names, names).items()
            for effect, _, found in each
            if effect is not Effect.RENAMED
        }
        for old, new in ((one, two), (two, one))
    )
    swapped = {(label, OPPOSITE.get(effect, effect), found) for label, effect, found in backward}
    assert forward == swapped
