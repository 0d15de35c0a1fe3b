"""Differences between a topic and its copy, and between a topic and what it was before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.java_regex import compile_java

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ConfigDrift(NamedTuple):
    """A topic setting that differs; None = not set on the topic itself, a default rules."""

    name: str
    source: str | None
    target: str | None


class SyncedSettings:
    """Which topic settings MM2 keeps equal, by its `config.properties.exclude`.

    Source: `DefaultConfigPropertyFilter`: whole-name matches of Java regular expressions. With
    `use.defaults.from=target`, the default, MM2 copies what is set on the source topic and removes
    from the copy what is not (KIP-894, 3.5); so settings are compared as set on the topics, and
    defaults never.
    Raises ValueError naming the expression that cannot be read.
    """

    def __init__(self, exclude: Sequence[str]) -> None:
        self._exclude = tuple(compile_java(pattern) for pattern in exclude)

    def synced(self, name: str) -> bool:
        """Tell whether MM2 keeps the setting *name* equal."""
        return not any(pattern.fullmatch(name) for pattern in self._exclude)

    def drift(
        self, source: Mapping[str, str], target: Mapping[str, str]
    ) -> tuple[ConfigDrift, ...]:
        """Differences between the settings that are set on a topic itself and on its copy."""
        return tuple(
            ConfigDrift(name, source.get(name), target.get(name))
            for name in sorted(source.keys() | target.keys())
            if source.get(name) != target.get(name) and self.synced(name)
        )


@dataclass(slots=True)
class TopicEpochs:
    """Watches one topic of one side for re-creation: another id under the same name (KIP-516)."""

    recreations: int = 0
    _topic_id: str | None = None

    def observe_id(self, topic_id: str | None) -> bool:
        """Take the topic's id of a metadata read; True when it was deleted and created again.

        None: the broker tells none, or there is no topic. A topic that was away and is back with
        another id was re-created as well.
        """
        if topic_id is None:
            return False
        recreated = self._topic_id not in (None, topic_id)
        self.recreations += recreated
        self._topic_id = topic_id
        return recreated
