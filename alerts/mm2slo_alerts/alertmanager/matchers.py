"""Matchers of Alertmanager's configuration, parsed from their text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.promql import Matcher
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MATCHER: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*(=~|!~|!=|=)\s*(.*?)\s*", re.DOTALL)


def parse_matcher(text: str) -> Matcher:
    """Return the matcher that *text* means, as in `flow=~"us->.*"`. Raises UserError."""
    found = _MATCHER.fullmatch(text)
    if found is None:
        raise UserError(f'{text!r} is not a matcher; expected one such as severity="page"')
    label, operator, value = found.groups()
    return Matcher(label, operator, json.loads(value) if value.startswith('"') else value)


def matchers_of(route: Mapping[str, Any]) -> Iterator[Matcher]:
    """Yield the matchers of *route*, also those of the deprecated fields."""
    yield from map(parse_matcher, route.get("matchers") or ())
    for field, operator in (("match", "="), ("match_re", "=~")):
        for label, value in (route.get(field) or {}).items():
            yield Matcher(label, operator, str(value))


def matches(matchers: Sequence[Matcher], labels: Mapping[str, str]) -> bool:
    """Whether an alert matches; as in Alertmanager, a missing label is an empty one."""
    return all(_matches(each, labels.get(each.label, "")) for each in matchers)


def _matches(matcher: Matcher, found: str) -> bool:
    if matcher.operator in {"=", "!="}:
        same = found == matcher.value
    else:
        same = re.fullmatch(matcher.value, found) is not None
    return same is not matcher.operator.startswith("!")
