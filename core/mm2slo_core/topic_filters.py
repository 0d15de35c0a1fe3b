"""Topic and group filters of MirrorMaker 2, and the transforms of its source connector.

Filters have the semantics of Kafka's `DefaultTopicFilter` and `DefaultGroupFilter`: patterns of a
list are alternatives, a name must match as a whole, exclusion wins, an empty list matches nothing.

Transforms: Kafka's `RegexRouter`, `Filter` and `TopicNameMatches` (KIP-66, KIP-585). Transforms see
copies: records have the name that the replication policy gives. Other classes are known by their
names only, such as Confluent's `Filter$Value` and Debezium's `ByLogicalTableRouter`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mm2slo_core.java_values import compile_java, split_list
from mm2slo_core.replication_policy import DEFAULT_VERSION, KafkaVersion

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
    # MirrorUtils.compilePatternList joins the list, so that groups and flags span entries.
    return compile_java("|".join(patterns)) if patterns else None


_KAFKA: Final = "org.apache.kafka.connect.transforms."

TRANSFORM_SETTING: Final = re.compile(
    r"errors\.tolerance|transforms|predicates"
    r"|(transforms|predicates)\..+\.(type|predicate|negate|regex|replacement|pattern)"
)
_DROPS: Final = re.compile(r"(.*\.)?\w*Filter(\$\w+)?")
_RENAMES: Final = re.compile(r"(.*\.)?\w*(Router|Topic)\w*(\$\w+)?")
_REFERENCE: Final = re.compile(r"\$\{[^}]*:")

_REPLACEMENT: Final = re.compile(
    r"\\(?P<literal>.)|\$\{(?P<name>[a-zA-Z][a-zA-Z0-9]*)\}|\$(?P<number>[0-9]+)|[^\\$]+", re.DOTALL
)


def transform_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The *settings* of a source connector that decide about names and dropped records.

    Empty without transforms. Left out are options of other classes, which may be secrets, and
    references to config providers, which only Connect resolves.
    """
    if not settings.get("transforms", "").strip():
        return {}
    return {
        key: settings[key]
        for key in sorted(settings)
        if TRANSFORM_SETTING.fullmatch(key) and not _REFERENCE.search(settings[key])
    }


class CopyEffect(NamedTuple):
    """What transforms do to the copies of one topic."""

    name: str | None
    """The name of the copy; None if it is not known."""
    may_drop: bool
    """Whether they may drop records of the topic."""


class RecordTransforms:
    """The transforms of a source connector, by the settings of `transform_settings`."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self.names: tuple[str, ...] = split_list(settings.get("transforms", ""))
        self._skips_errors = settings.get("errors.tolerance", "").strip().lower() == "all"

    @property
    def routers(self) -> tuple[str, ...]:
        """Those that rename copies, by their names."""
        return tuple(each for each in self.names if _is_router(self._option(each, "type")))

    def effect(self, remote_topic: str) -> CopyEffect:
        """The effect on copies that the replication policy names *remote_topic*."""
        name: str | None = remote_topic
        may_drop = False
        # Connect applies them in this order: each sees the name that those before it gave.
        for alias in self.names:
            class_name = self._option(alias, "type")
            applies = self._applies(alias, name)
            if applies is False:
                continue
            if not _is_router(class_name):
                # A record that a transform fails on is dropped as well if errors are tolerated.
                drops = self._skips_errors or _DROPS.fullmatch(class_name) is not None
                may_drop = may_drop or drops
            elif name is not None:
                renamed = self._renamed(alias, class_name, name)
                name = renamed if applies or renamed == name else None
        return CopyEffect(name, may_drop)

    def _option(self, alias: str, key: str, kind: str = "transforms") -> str:
        return self._settings.get(f"{kind}.{alias}.{key}", "").strip()

    def _applies(self, alias: str, name: str | None) -> bool | None:
        """Whether the transform *alias* handles records of topic *name*; None: some, or unknown."""
        predicate = self._option(alias, "predicate")
        if not predicate:
            return True
        class_name = self._option(predicate, "type", "predicates").removeprefix(_KAFKA)
        pattern = self._option(predicate, "pattern", "predicates")
        is_by_name = class_name.removeprefix("predicates.") == "TopicNameMatches"
        if name is None or not is_by_name or not pattern:
            return None
        try:
            matches = compile_java(pattern).fullmatch(name) is not None
        except ValueError:
            return None
        return matches != (self._option(alias, "negate").lower() == "true")

    def _renamed(self, alias: str, class_name: str, name: str) -> str | None:
        """The name that a router gives; None if it is not known."""
        regex = self._settings.get(f"transforms.{alias}.regex")
        replacement = self._settings.get(f"transforms.{alias}.replacement")
        is_known = class_name.removeprefix(_KAFKA) == "RegexRouter"
        if not is_known or regex is None or replacement is None:
            return None
        try:
            pattern = compile_java(regex)
            if not pattern.fullmatch(name):
                return name
            # As in Java, the whole name must match, but the first match that is found is replaced.
            return pattern.sub(lambda found: _expand(replacement, found), name, count=1) or None
        except (ValueError, IndexError):
            return None


def _is_router(class_name: str) -> bool:
    return _RENAMES.fullmatch(class_name) is not None and not _DROPS.fullmatch(class_name)


def _expand(replacement: str, found: re.Match[str]) -> str:
    """*replacement* as `Matcher.appendReplacement` expands it. Raises ValueError or IndexError."""
    parts, at = [], 0
    while at < len(replacement):
        part = _REPLACEMENT.match(replacement, at)
        if part is None:
            raise ValueError(f"{replacement!r} is no replacement of a Java regular expression")
        at = part.end()
        if part["number"]:
            # More digits belong to the number as long as such a group exists.
            digits = part["number"]
            length = 1
            while length < len(digits) and int(digits[: length + 1]) <= found.re.groups:
                length += 1
            parts += [found[int(digits[:length])] or "", digits[length:]]
        elif part["name"]:
            parts.append(found[part["name"]] or "")
        else:
            parts.append(part["literal"] or part[0])
    return "".join(parts)
