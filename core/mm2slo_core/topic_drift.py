"""Differences between a topic and its copy, and re-creation of a topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.java_regex import compile_java

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ConfigDrift(NamedTuple):
    """A topic setting that differs; None: not set on the topic, so the default applies."""

    name: str
    source: str | None
    target: str | None


class SyncedSettings:
    """The topic settings that MM2 syncs, by its `config.properties.exclude`.

    Source: `DefaultConfigPropertyFilter`: Java regular expressions that match the whole name. With
    `use.defaults.from=target`, the default, MM2 copies settings of the source topic and removes
    others from the copy (KIP-894, 3.5); so only settings set on the topics are compared.
    Raises ValueError for an invalid expression.
    """

    def __init__(self, exclude: Sequence[str]) -> None:
        self._exclude = tuple(compile_java(pattern) for pattern in exclude)

    def is_synced(self, name: str) -> bool:
        return not any(pattern.fullmatch(name) for pattern in self._exclude)

    def drift(
        self, source: Mapping[str, str], target: Mapping[str, str]
    ) -> tuple[ConfigDrift, ...]:
        """Return the differences between the settings of a topic and of its copy."""
        return tuple(
            ConfigDrift(name, source.get(name), target.get(name))
            for name in sorted(source.keys() | target.keys())
            if source.get(name) != target.get(name) and self.is_synced(name)
        )


@dataclass(slots=True)
class TopicEpochs:
    """Detects re-creation of one topic: another topic id under the same name (KIP-516)."""

    recreations: int = 0
    topic_id: str | None = None

    def observe_id(self, topic_id: str | None) -> bool:
        """Record the topic id; True if the topic was deleted and created again.

        None: the broker reports no id, or the topic does not exist. A topic that reappears with
        another id was re-created as well.
        """
        if topic_id is None:
            return False
        recreated = self.topic_id not in (None, topic_id)
        self.recreations += recreated
        self.topic_id = topic_id
        return recreated
