"""What Prometheus 3 reads differently than Prometheus 2, by the shape of an expression.

Prometheus 3 leaves the older edge out of ranges, subqueries and the look back for the newest
sample, writes bounds of buckets as floats (`le="10.0"`), and lets `.` match a newline. A rule is
made of shapes, and each shape was reviewed once; a function that no shape knows is refused, so
that a new kind of rule is reviewed, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_alerts.model import Group, Rule


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of expression: which functions make it, and what the review found.

    `effect` is the finding in few words, as it is told of each rule.
    """

    name: str
    functions: frozenset[str]
    effect: str
    finding: str


STEPS: Final = Shape(
    "sum of steps",
    frozenset({"sum_over_time", "count_over_time"}),
    "same samples",
    "Ranges over recorded series are half an interval short of their name, so that no sample "
    "is ever on an edge: both versions take the same ones.",
)
SHAPES: Final = (
    Shape(
        "growth",
        frozenset({"increase", "rate", "resets"}),
        "figures within the extrapolation's bound",
        "A sample exactly on the older edge is left out by 3. Both versions stretch the growth to "
        "the whole range, so the figures differ by less than two scrape intervals' share of it, "
        "and only where scrapes fall on the edge to the millisecond. A counter that started within "
        "the range is stretched to its start in both, by rules that differ in detail.",
    ),
    STEPS,
    Shape(
        "last known",
        frozenset({"last_over_time"}),
        "up to one evaluation earlier",
        "A value that is exactly as old as the range counts one evaluation longer in 2.",
    ),
    Shape(
        "lately",
        frozenset({"present_over_time", "max_over_time", "min_over_time"}),
        "up to one evaluation earlier",
        "What happened exactly as long ago as the range counts one evaluation longer in 2: "
        "maintenance ends 30 s later there, an alert that holds for a time as well.",
    ),
    Shape(
        "course",
        frozenset({"predict_linear", "deriv", "delta"}),
        "one sample of many less",
        "One sample of many less in 3; the line through the others is the same.",
    ),
    Shape(
        "absence",
        frozenset({"absent"}),
        "same",
        "Of an instant selector: as `newest`.",
    ),
)
SUBQUERY: Final = Shape(
    "subquery",
    frozenset(),
    "one evaluation of many less",
    "One evaluation less in 3 where the range is a multiple of its step; the threshold leaves "
    "room for it.",
)
NEWEST: Final = Shape(
    "newest",
    frozenset(),
    "same",
    "A sample exactly 5 minutes old is still found by 2. What is recorded every 5 minutes is read "
    "by a range of 10, or within the group that records it.",
)
PLAIN: Final = frozenset(
    {
        *("abs", "clamp_min", "clamp_max", "label_replace", "time", "vector"),
        *("avg", "bottomk", "count", "group", "max", "min", "sum", "topk"),
    }
)
"""Functions and aggregations of which both versions think alike."""
_WORDS: Final = frozenset(
    {"and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right"}
)

_CALL = re.compile(r"\b([a-z_]+)\s*\(")
_SUBQUERY = re.compile(r"\[[0-9a-z]+:[0-9a-z]*\]")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


class UnreviewedError(ValueError):
    """A rule uses what nobody has reviewed for Prometheus 3."""


def shapes(expr: str) -> tuple[Shape, ...]:
    """The shapes of which *expr* is made; UnreviewedError for a function that none knows."""
    code = _TEXT.sub('""', expr)
    called = set(_CALL.findall(code)) - _WORDS - PLAIN
    found = [shape for shape in SHAPES if shape.functions & called]
    unknown = called.difference(*(shape.functions for shape in SHAPES))
    if unknown or re.search(r"\ble\s*(=|!)", code) or "histogram_quantile" in code:
        raise UnreviewedError(f"not reviewed for Prometheus 3: {', '.join(unknown) or 'le'}")
    if _SUBQUERY.search(code):
        found = [shape for shape in found if shape is not STEPS] + [SUBQUERY]
    return tuple(found) or (NEWEST,)


def reviewed(groups: Iterable[Group]) -> tuple[tuple[str, Rule, tuple[Shape, ...]], ...]:
    """Group, rule and its shapes, for each rule of *groups*."""
    return tuple((group.name, rule, shapes(rule.expr)) for group in groups for rule in group.rules)
