"""Reading of nested YAML values, with every problem told by the field that it is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(slots=True)
class Problems:
    """What was refused so far, one sentence each."""

    found: list[str] = field(default_factory=list)

    def add(self, place: str, what: str, expected: str) -> None:
        """Refuse the field *place*."""
        self.found.append(f"{place}: {what}; expected {expected}")


@dataclass(slots=True)
class Node:
    """A mapping of a document and its place, as in `SLO us-to-eu-latency: spec.objectives[0]`."""

    place: str
    value: dict[str, Any]
    problems: Problems

    def only(self, known: Sequence[str], why: str = "cannot be expressed") -> None:
        """Refuse every key that is not *known*."""
        for key in self.value:
            if key not in known:
                self.problems.add(self._at(key), why, f"no key but {', '.join(known)}")

    def text(self, key: str) -> str | None:
        """The text at *key*; anything else is refused."""
        found = self.value.get(key)
        if isinstance(found, str) and found:
            return found
        self.refuse(key, "text")
        return None

    def node(self, key: str) -> Node | None:
        """The mapping at *key*; anything else is refused."""
        return self._as_node(self._at(key), self.value.get(key))

    def nodes(self, key: str) -> list[Node]:
        """The mappings of the list at *key*; anything else is refused."""
        found = self.value.get(key)
        if not isinstance(found, list):
            self.refuse(key, "a list")
            return []
        nodes = [self._as_node(f"{self._at(key)}[{n}]", each) for n, each in enumerate(found)]
        return [each for each in nodes if each is not None]

    def one(self, key: str) -> Node | None:
        """The only mapping of the list at *key*; more or fewer are refused."""
        before = len(self.problems.found)
        found = self.nodes(key)
        if len(found) == 1:
            return found[0]
        if len(self.problems.found) == before:
            self.problems.add(self._at(key), f"has {len(found)} entries", "exactly one")
        return None

    def refuse(self, key: str, expected: str) -> None:
        """Refuse the value at *key*."""
        self.problems.add(self._at(key), _shown(self.value.get(key)), expected)

    def must_be(self, key: str, wanted: object) -> None:
        """Refuse the value at *key* unless it is *wanted*."""
        found = self.value.get(key)
        if found != wanted or isinstance(found, bool) != isinstance(wanted, bool):
            self.refuse(key, str(wanted).lower() if isinstance(wanted, bool) else str(wanted))

    def _at(self, key: object) -> str:
        return f"{self.place}{'' if self.place.endswith(': ') else '.'}{key}"

    def _as_node(self, place: str, value: object) -> Node | None:
        if isinstance(value, dict):
            return Node(place, value, self.problems)
        self.problems.add(place, _shown(value), "a mapping")
        return None


_LONGEST = 80


def _shown(value: object) -> str:
    if value is None:
        return "is missing"
    text = repr(value)
    return f"is {text if len(text) <= _LONGEST else text[:_LONGEST] + '...'}"
