"""Topic names of MirrorMaker 2: Kafka's replication policies, in Python.

Formulas: `DefaultReplicationPolicy`, `IdentityReplicationPolicy` and `ReplicationPolicy` of
Kafka 4.1; KIP-690 and KIP-949 (separators of internal topics), KIP-1074 (internal topics).

A policy knows names only: to it `orders.v1` came from a cluster called `orders`. Ask `lineage`
with the aliases of the configuration where a cluster is meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

HEARTBEATS_TOPIC = "heartbeats"


class KafkaVersion(NamedTuple):
    """Kafka release line of MirrorMaker 2, as in `KafkaVersion(4, 1)`."""

    major: int
    minor: int


DEFAULT_VERSION = KafkaVersion(4, 1)
_USER_INTERNAL_TOPICS_COPIED = KafkaVersion(4, 0)
_CYCLES_BY_SOURCE = KafkaVersion(4, 4)


class ReplicationPolicy(Protocol):
    """How a flow names topics; Kafka's interface of the same name plus the cycle check."""

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Name on the target of *topic* of the cluster *source_alias*."""

    def topic_source(self, topic: str) -> str | None:
        """What the name gives as source alias; None for a local topic."""

    def upstream_topic(self, topic: str) -> str | None:
        """Name on the cluster that *topic* was copied from; None for a local topic."""

    def original_topic(self, topic: str) -> str:
        """Name on the cluster where *topic* started, any number of hops away."""

    def offset_syncs_topic(self, cluster_alias: str) -> str:
        """Offset syncs topic; *cluster_alias* is the cluster that does not hold it."""

    def checkpoints_topic(self, source_alias: str) -> str:
        """Checkpoints topic on the target of flows from *source_alias*."""

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Tell whether *topic* is `heartbeats` or a copy of one."""

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Tell whether *topic* holds checkpoints."""

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Tell whether *topic* belongs to MirrorMaker 2 itself."""

    def is_internal_topic(self, topic: str) -> bool:
        """Tell whether *topic* is never copied, whatever the filter says."""

    def is_cycle(self, topic: str, target_alias: str, source_alias: str | None = None) -> bool:
        """Tell whether copying *topic* to *target_alias* would bring it back to where it was."""


@dataclass(frozen=True, slots=True)
class DefaultPolicy:
    """Remote topics are `<alias><separator><topic>`.

    *version* is MirrorMaker 2's: it decides which user topics count as internal (all `*.internal`
    and `*-internal` before 4.0) and which names count as cycles (4.4). *separator* also shapes
    the names of offset syncs and checkpoints topics, unless *internal_separator_enabled* is
    False; before Kafka 3.1 these two always had dots, so False describes those versions, too.
    """

    separator: str = "."
    internal_separator_enabled: bool = True
    version: KafkaVersion = DEFAULT_VERSION

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Name on the target of *topic* of the cluster *source_alias*."""
        return f"{source_alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Text before the first separator, known alias or not; None without two parts.

        As Java's `split` counts parts: empty ones at the end are dropped, so `foo.` has one.
        """
        if not self.separator:
            # Java splits by an empty pattern into single characters.
            return topic[0] if len(topic) > 1 else None
        head, *rest = topic.split(self.separator)
        return head if any(rest) else None

    def upstream_topic(self, topic: str) -> str | None:
        """Text after the first separator; None for a local topic."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def original_topic(self, topic: str) -> str:
        """Text after the last separator that leads a part."""
        return _original_topic(self, topic)

    def offset_syncs_topic(self, cluster_alias: str) -> str:
        """`mm2-offset-syncs.<alias>.internal`."""
        between = self._internal_separator
        return f"mm2-offset-syncs{between}{cluster_alias}{between}internal"

    def checkpoints_topic(self, source_alias: str) -> str:
        """`<alias>.checkpoints.internal`."""
        return f"{source_alias}{self._checkpoints_suffix}"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Tell whether *topic* is `heartbeats` or any name that ends in `<separator>heartbeats`."""
        return self.original_topic(topic) == HEARTBEATS_TOPIC

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Tell whether *topic* holds checkpoints."""
        return topic.endswith(self._checkpoints_suffix)

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Tell whether *topic* belongs to MirrorMaker 2; before 4.0 the suffix alone decides."""
        suffixed = topic.endswith(f"{self._internal_separator}internal")
        if self.version < _USER_INTERNAL_TOPICS_COPIED:
            return suffixed
        return (suffixed and topic.startswith("mm2")) or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Tell whether *topic* is never copied: Kafka's, hidden, or MirrorMaker 2's own."""
        if topic.startswith(("__", ".")) or self.is_mm2_internal_topic(topic):
            return True
        return self.version < _USER_INTERNAL_TOPICS_COPIED and topic.endswith(
            (".internal", "-internal")
        )

    def is_cycle(self, topic: str, target_alias: str, source_alias: str | None = None) -> bool:
        """Tell whether *topic* was on *target_alias* before, by the aliases in its name.

        From 4.4 a topic that names *source_alias* counts, too (KAFKA-9914).
        """
        origins = {target_alias}
        if source_alias is not None and self.version >= _CYCLES_BY_SOURCE:
            origins.add(source_alias)
        return _has_origin(self, topic, origins)

    @property
    def _internal_separator(self) -> str:
        return self.separator if self.internal_separator_enabled else "."

    @property
    def _checkpoints_suffix(self) -> str:
        return f"{self._internal_separator}checkpoints{self._internal_separator}internal"


@dataclass(frozen=True, slots=True)
class IdentityPolicy:
    """Topics keep their names; only names that end in `heartbeats` follow the default policy.

    *source_alias* is what every topic is said to come from, as `source.cluster.alias` is inside
    MirrorMaker 2; None when it is not known. Cycles cannot be seen in names that do not change.
    """

    source_alias: str | None
    separator: str = "."
    internal_separator_enabled: bool = True
    version: KafkaVersion = DEFAULT_VERSION

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """*topic* itself, or `<alias><separator><topic>` when it ends in `heartbeats`."""
        if _looks_like_heartbeats(topic):
            return self._default.remote_topic(source_alias, topic)
        return topic

    def topic_source(self, topic: str) -> str | None:
        """The source alias of this policy, whatever the topic."""
        if _looks_like_heartbeats(topic):
            return self._default.topic_source(topic)
        return self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """*topic* itself."""
        if _looks_like_heartbeats(topic):
            return self._default.upstream_topic(topic)
        return topic

    def original_topic(self, topic: str) -> str:
        """*topic* itself."""
        return _original_topic(self, topic)

    def offset_syncs_topic(self, cluster_alias: str) -> str:
        """`mm2-offset-syncs.<alias>.internal`, as with the default policy."""
        return self._default.offset_syncs_topic(cluster_alias)

    def checkpoints_topic(self, source_alias: str) -> str:
        """`<alias>.checkpoints.internal`, as with the default policy."""
        return self._default.checkpoints_topic(source_alias)

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Tell whether *topic* is `heartbeats` or a copy of one."""
        return self.original_topic(topic) == HEARTBEATS_TOPIC

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Tell whether *topic* holds checkpoints."""
        return self._default.is_checkpoints_topic(topic)

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Tell whether *topic* belongs to MirrorMaker 2 itself."""
        return self._default.is_mm2_internal_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Tell whether *topic* is never copied: Kafka's, hidden, or MirrorMaker 2's own."""
        return self._default.is_internal_topic(topic)

    def is_cycle(self, topic: str, target_alias: str, source_alias: str | None = None) -> bool:
        """Tell whether a heartbeats topic was on *target_alias* before; others never show it."""
        del source_alias  # KAFKA-9914 leaves policies that keep names as they were
        return _has_origin(self, topic, {target_alias})

    @property
    def _default(self) -> DefaultPolicy:
        return DefaultPolicy(self.separator, self.internal_separator_enabled, self.version)


class Lineage(NamedTuple):
    """Where a topic came from: its name at the start, and the clusters it passed, newest first."""

    original_topic: str
    hops: tuple[str, ...]


def lineage(policy: ReplicationPolicy, topic: str, aliases: Collection[str]) -> Lineage:
    """Follow *topic* back as long as its name gives one of the known *aliases*.

    `B.A.foo` is ("foo", ("B", "A")); `orders.v1` is local unless a cluster is called `orders`.
    """
    hops: list[str] = []
    while (source := policy.topic_source(topic)) is not None and source in aliases:
        upstream = policy.upstream_topic(topic)
        hops.append(source)
        if upstream is None or upstream == topic:
            break
        topic = upstream
    return Lineage(topic, tuple(hops))


def _looks_like_heartbeats(topic: str) -> bool:
    return topic.endswith(HEARTBEATS_TOPIC)


def _original_topic(policy: ReplicationPolicy, topic: str) -> str:
    while (upstream := policy.upstream_topic(topic)) is not None and upstream != topic:
        topic = upstream
    return topic


def _has_origin(policy: ReplicationPolicy, topic: str, origins: Collection[str]) -> bool:
    while (source := policy.topic_source(topic)) is not None:
        if source in origins:
            return True
        upstream = policy.upstream_topic(topic)
        if upstream is None or upstream == topic:
            return False
        topic = upstream
    return False
