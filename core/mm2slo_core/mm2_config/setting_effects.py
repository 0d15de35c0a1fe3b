"""Which settings decide what MirrorMaker 2 copies, and their values on a flow.

With the precedence and defaults of `MirrorSourceConfig`, `MirrorCheckpointConfig` and Connect.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.flow_config import DEFAULT_CONFIG_PROPERTIES_EXCLUDE
from mm2slo_core.java_values import split_list
from mm2slo_core.mm2_config.connector_keys import RENAMED, connector_key
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind, Form
from mm2slo_core.name_filters import default_topics_exclude
from mm2slo_core.replication_policy import DEFAULT_VERSION, KafkaVersion

if TYPE_CHECKING:
    from collections.abc import Collection

    from mm2slo_core.mm2_config.mirror_setup import MirrorFlow, Setting

_KAFKA_4: Final = KafkaVersion(4, 0)  # KIP-629 ended old keys, KIP-1074 narrowed internal topics
_CONSEQUENCES: Final = {
    re.compile(pattern): text
    for pattern, text in {
        r"topics|topics\.exclude|topic\.filter\.class|internal topics|heartbeats\.replication"
        r"\.enabled": "other topics are copied",
        r"groups|groups\.exclude|group\.filter\.class": "offsets of other groups are translated",
        r"sync\.topic\..+|config\.propert.+|use\.defaults\.from": "settings and ACLs of topics are "
        "synced in another way",
        r"refresh\..+": "new topics, partitions and groups are found sooner, later or never",
        r"(.+\.)?replication\.factor": "applies to topics created from now on",
        r"(checkpoint )?tasks\.max": "the work is divided among another number of tasks",
        r"exactly\.once\..+|transaction\.boundary.*|offset\.flush\.interval\.ms|errors\.(tolerance"
        r"|retry\.timeout)|producer\.override\.(acks|enable\.idempotence|max\.in\.flight.+|retries"
        r"|delivery\.timeout\.ms|max\.request\.size)": "what is lost, repeated or out of order "
        "after failures changes",
        r"source\.consumer\.isolation\.level": "read_committed skips records of aborted "
        "transactions; read_uncommitted copies them",
        r"source\.consumer\.auto\.offset\.reset": "copying starts elsewhere without a position, or "
        "after retention deleted records that were not copied",
        r"(key|value|header)\.converter": "only ByteArrayConverter copies records byte for byte",
        r"(transforms|predicates).*": "records are changed or left out in another way",
        r"offset\.lag\.max": "after a failover, groups read up to this many more records of each "
        "partition again",
        r"emit\.(offset-syncs|checkpoints)\..+|sync\.group\.offsets\..+": "offsets of groups are "
        "translated, or committed on the target, more often, less often or never",
        r"emit\.heartbeats\..+": "heartbeats are sent more or less often",
        r"replication\.policy\..+": "copies and internal topics get other names",
        "offset syncs": "offsets are only translated for records that are copied from now on",
        "checkpoints": "clients that translate offsets need the same policy settings",
        "(source|target) servers": "if this is another cluster, positions and copies do not fit; "
        "compare the cluster ids",
        r".+ state": "connectors that are paused or stopped do nothing",
    }.items()
}
_DEFAULTS: Final = {
    "exactly.once.source.support": "disabled",
    "offset.flush.interval.ms": "60000",
    "source.consumer.isolation.level": "read_uncommitted",
    "source.consumer.auto.offset.reset": "earliest",
    "checkpoint tasks.max": "1",
    "config.properties.exclude": ",".join(DEFAULT_CONFIG_PROPERTIES_EXCLUDE),
}
# Names, which are compared on their own, and how clusters are reached.
_ELSEWHERE: Final = re.compile(
    r"(?:^|\.)(?:ssl|sasl|security|bootstrap|config\.providers)\b|\.cluster\.alias$"
    r"|\.storage\.topic$|^(?:name|connector\.class|enabled|group\.id)$|^(?:admin|consumer)\."
)


def consequence_of(key: str) -> str | None:
    """What a change of *key* means; None if it does not affect what is copied."""
    return next((text for each, text in _CONSEQUENCES.items() if each.fullmatch(key)), None)


def default_value(key: str) -> str:
    entry = connector_key(key)
    return _DEFAULTS.get(key) or (entry.default if entry else None) or ""


def effective_values(
    flow: MirrorFlow, kinds: Collection[ConnectorKind], version: KafkaVersion | None, form: Form
) -> dict[str, str]:
    """Settings of the connectors *kinds* and of their workers; of defaults, only those that vary.

    Without *version*, old keys count. A key of several connectors is the first one's.
    """
    found = {}
    if ConnectorKind.SOURCE in kinds:
        release = version or DEFAULT_VERSION
        is_narrow = release >= _KAFKA_4
        found["internal topics"] = "mm2*.internal" if is_narrow else "*.internal, *-internal"
        found["topics.exclude"] = ",".join(default_topics_exclude(release))
        if form is Form.PROPERTIES:
            found |= dict.fromkeys(
                ("key.converter", "value.converter", "header.converter"), "ByteArrayConverter"
            )
        found |= {
            re.sub(r"^producer\.", "producer.override.", key): setting.value.strip()
            for key, setting in flow.worker.settings.items()
            if not _ELSEWHERE.search(key)
        }
    for kind in (each for each in ConnectorKind if each in kinds):
        connector = flow.connectors[kind]
        found[f"{kind.name.lower()} state"] = connector.state
        settings = {
            # A cluster's settings override those of all consumers.
            **{
                f"source.{k}": s for k, s in connector.settings.items() if k.startswith("consumer.")
            },
            **connector.settings,
        }
        for key, setting in settings.items():
            if kind is ConnectorKind.CHECKPOINT and key == "tasks.max":
                found["checkpoint tasks.max"] = setting.value.strip()
            elif _acts(key, setting, kind, version):
                found[key] = setting.value.strip()
    return found


def _acts(key: str, setting: Setting, kind: ConnectorKind, version: KafkaVersion | None) -> bool:
    entry = connector_key(key)
    if entry is None or _ELSEWHERE.search(key):
        return entry is None and kind is ConnectorKind.SOURCE
    is_old = setting.key.endswith(tuple(RENAMED))
    if version and (not entry.exists_in(version) or (is_old and version >= _KAFKA_4)):
        return False
    return kind is next((each for each in ConnectorKind if each in entry.kinds), None)


def means_the_same(key: str, one: str, other: str) -> bool:
    if key.endswith(" servers"):
        return not (one and other) or bool({*split_list(one)} & {*split_list(other)})
    if key.removesuffix(".exclude") in {"topics", "groups", "config.properties"}:
        return set(split_list(one)) == set(split_list(other))
    return _plain(one) == _plain(other)


def _plain(value: str) -> str:
    text = re.sub(r"^org\.apache\.kafka\.(?:\w+\.)+", "", value)
    return text.lower() if text.lower() in {"true", "false"} else text
