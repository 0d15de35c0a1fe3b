"""Names of Kafka resources as ACLs have them: literal, prefixed, or `*` for all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.name_filters import split_list

if TYPE_CHECKING:
    from collections.abc import Iterable

ALL_NAMES = "*"
# A dot without a quantifier is taken as a dot: `orders.v1` is nearly always meant as that name.
_LITERAL = re.compile(r"(?:[\w-]|\\[.-]|\.(?![*+?{]))*", re.ASCII)
_LAST_CHARACTER = re.compile(r"\\?.$")


class AclPattern(NamedTuple):
    """Kafka's `ResourcePattern`: PREFIXED or LITERAL, where the literal name `*` is all names."""

    name: str
    prefixed: bool = False

    def covers(self, other: AclPattern) -> bool:
        """Whether this pattern matches every name that *other* matches."""
        if self.prefixed:
            return other.name.startswith(self.name) and other.name != ALL_NAMES
        return self.name == ALL_NAMES or self == other


def with_prefix(prefix: str) -> AclPattern:
    """The pattern of all names with *prefix*; an empty one is all names."""
    return AclPattern(prefix, prefixed=True) if prefix else AclPattern(ALL_NAMES)


def parse_pattern(text: str) -> AclPattern:
    """`orders` is that name, `orders*` and `*` are prefixes."""
    prefix, all_names, _rest = text.partition(ALL_NAMES)
    return with_prefix(prefix) if all_names else AclPattern(text)


def acl_patterns(expressions: Iterable[str]) -> tuple[AclPattern, ...]:
    """The narrowest ACL patterns for MirrorMaker 2's lists of regular expressions.

    `orders` is a literal name, `orders.*` a prefix; an expression without a literal start is `*`.
    """
    found = (
        _acl_pattern(alternative)
        for entry in expressions
        for expression in split_list(entry)
        for alternative in ([expression] if "(" in expression else expression.split("|"))
    )
    return tuple(dict.fromkeys(found))


def _acl_pattern(expression: str) -> AclPattern:
    match = _LITERAL.match(expression)
    literal = match[0] if match else ""
    rest = expression[len(literal) :]
    if rest.startswith(("*", "+", "?", "{")):
        literal = _LAST_CHARACTER.sub("", literal)
    name = literal.replace("\\", "")
    return with_prefix(name) if rest else AclPattern(name)
