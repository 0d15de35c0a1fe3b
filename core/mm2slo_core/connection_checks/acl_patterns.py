"""Names of Kafka resources as ACLs have them: literal, prefixed, or `*` for all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.java_values import split_list

if TYPE_CHECKING:
    from collections.abc import Iterable

ALL_NAMES = "*"
# A dot without a quantifier is taken as a dot: `orders.v1` is nearly always meant as that name.
_LITERAL = re.compile(r"(?:(?:[\w-]|\\[.-]|\.(?![*+?{]))(?![*+?{]))*", re.ASCII)


class AclPattern(NamedTuple):
    """Kafka's `ResourcePattern`: PREFIXED or LITERAL, where the literal name `*` is all names."""

    name: str
    prefixed: bool = False

    @classmethod
    def parse(cls, text: str) -> AclPattern:
        """`orders` is that name, `orders*` and `*` are prefixes."""
        prefix = text.removesuffix(ALL_NAMES)
        return cls(prefix or ALL_NAMES, prefixed=0 < len(prefix) < len(text))

    def covers(self, other: AclPattern) -> bool:
        """Whether this pattern matches every name that *other* matches."""
        if self.prefixed:
            return other.name.startswith(self.name) and other.name != ALL_NAMES
        return self.name == ALL_NAMES or self == other


def acl_patterns(expressions: Iterable[str]) -> tuple[AclPattern, ...]:
    """The narrowest ACL patterns for MirrorMaker 2's lists of regular expressions.

    `orders` is a literal name, `orders.*` a prefix; an expression without a literal start is `*`.
    """
    found: dict[AclPattern, None] = {}
    for expression in (each for entry in expressions for each in split_list(entry)):
        for alternative in [expression] if "(" in expression else expression.split("|"):
            literal = (_LITERAL.match(alternative) or [""])[0]
            is_prefix = literal != alternative
            found[AclPattern.parse(literal.replace("\\", "") + ALL_NAMES * is_prefix)] = None
    return tuple(found)
