"""Topic and group filters of MirrorMaker 2: lists of Java regular expressions.

Semantics of Kafka's `DefaultTopicFilter` and `DefaultGroupFilter`: patterns of a list are
alternatives, a name must match as a whole, exclusion wins, an empty list matches nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mm2slo_core.java_regex import compile_java
from mm2slo_core.java_values import split_list
from mm2slo_core.replication_policy import DEFAULT_VERSION, KafkaVersion

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

DEFAULT_TOPICS = (".*",)
DEFAULT_GROUPS = (".*",)
DEFAULT_GROUPS_EXCLUDE = ("console-consumer-.*", "connect-.*", "__.*")
_KIP_1074 = KafkaVersion(4, 0)


def default_topics_exclude(version: KafkaVersion = DEFAULT_VERSION) -> tuple[str, ...]:
    """Return MirrorMaker 2's default of `topics.exclude`; KIP-1074 narrowed it in 4.0."""
    internal = r"mm2.*\.internal" if version >= _KIP_1074 else r".*[\-\.]internal"
    return (internal, r".*\.replica", "__.*")


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Include and exclude patterns of one kind of name.

    Raises ValueError for a pattern that Java rejects or that Python cannot match as Java does.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...]
    _included: re.Pattern[str] | None = field(init=False, repr=False, compare=False)
    _excluded: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_included", _compile(self.include))
        object.__setattr__(self, "_excluded", _compile(self.exclude))

    def matches(self, name: str) -> bool:
        if self._included is None or self._included.fullmatch(name) is None:
            return False
        return self._excluded is None or self._excluded.fullmatch(name) is None


@dataclass(frozen=True, slots=True)
class TopicFilter(NameFilter):
    """`topics` and `topics.exclude`; the defaults are those of Kafka 4.0 and newer."""

    include: tuple[str, ...] = DEFAULT_TOPICS
    exclude: tuple[str, ...] = default_topics_exclude()


@dataclass(frozen=True, slots=True)
class GroupFilter(NameFilter):
    """`groups` and `groups.exclude`."""

    include: tuple[str, ...] = DEFAULT_GROUPS
    exclude: tuple[str, ...] = DEFAULT_GROUPS_EXCLUDE


def _compile(entries: Iterable[str]) -> re.Pattern[str] | None:
    patterns = [pattern for entry in entries for pattern in split_list(entry)]
    # Kafka joins the list before compiling it, so groups and flags span entries.
    return compile_java("|".join(patterns)) if patterns else None
