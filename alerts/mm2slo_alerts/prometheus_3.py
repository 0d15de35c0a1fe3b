"""How Prometheus 3 evaluates the rules differently from Prometheus 2, by kind of expression.

Prometheus 3 excludes the older edge of ranges, subqueries and the lookback, writes bucket bounds
as floats (`le="10.0"`), and lets `.` match a newline. Each kind of expression (shape) was reviewed
once; a function that belongs to no shape raises an error until it is reviewed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_alerts.rule_model import Group, Rule


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of expression: its functions and the result of the review.

    `effect` is a short form of `finding`.
    """

    name: str
    functions: frozenset[str]
    effect: str
    finding: str


STEPS: Final = Shape(
    "sum of steps",
    frozenset({"sum_over_time", "count_over_time"}),
    "same samples",
    "Ranges over recorded series are half an interval shorter than their name, so that no "
    "sample is on an edge: both versions use the same samples.",
)
SHAPES: Final = (
    Shape(
        "growth",
        frozenset({"increase", "rate", "resets", "changes"}),
        "differences within the extrapolation",
        "Version 3 excludes a sample exactly on the older edge. Both versions extrapolate to the "
        "whole range, so results differ by less than two scrape intervals' share of it, and only "
        "if a scrape is on the edge to the millisecond. Both extrapolate a counter that started "
        "within the range to its start, with small differences.",
    ),
    STEPS,
    Shape(
        "last value",
        frozenset({"last_over_time"}),
        "up to one evaluation earlier",
        "Version 2 includes a value exactly as old as the range for one more evaluation.",
    ),
    Shape(
        "recent past",
        frozenset({"present_over_time", "max_over_time", "min_over_time"}),
        "up to one evaluation earlier",
        "Version 2 includes a sample exactly as old as the range for one more evaluation: "
        "maintenance, and alerts with such a range, end 30 s later there.",
    ),
    Shape(
        "trend",
        frozenset({"predict_linear", "deriv", "delta"}),
        "one sample of many fewer",
        "Version 3 uses one sample of many fewer; the regression through the others is the same.",
    ),
    Shape(
        "absence",
        frozenset({"absent"}),
        "same",
        "An instant selector, like `newest`.",
    ),
)
SUBQUERY: Final = Shape(
    "subquery",
    frozenset(),
    "one evaluation of many fewer",
    "Version 3 has one evaluation fewer where the range is a multiple of its step; the threshold "
    "allows for it.",
)
NEWEST: Final = Shape(
    "newest",
    frozenset(),
    "same",
    "Version 2 still finds a sample exactly 5 minutes old. Series recorded every 5 minutes are "
    "read with a range of 10, or within the group that records them.",
)
PLAIN: Final = frozenset(
    {
        *("abs", "clamp_min", "clamp_max", "label_replace", "time", "timestamp", "vector"),
        *("avg", "bottomk", "count", "group", "max", "min", "sum", "topk"),
    }
)
"""Functions and aggregations that are the same in both versions."""
_KEYWORDS: Final = frozenset(
    {"and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right"}
)

_CALL = re.compile(r"\b([a-z_]+)\s*\(")
_SUBQUERY = re.compile(r"\[[0-9a-z]+:[0-9a-z]*\]")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


class UnreviewedError(ValueError):
    """A rule uses a function that was not reviewed for Prometheus 3."""


def shapes(expr: str) -> tuple[Shape, ...]:
    """Return the shapes of *expr*. Raises UnreviewedError for a function without a shape."""
    code = _TEXT.sub('""', expr)
    called = set(_CALL.findall(code)) - _KEYWORDS - PLAIN
    found = [shape for shape in SHAPES if shape.functions & called]
    unknown = called.difference(*(shape.functions for shape in SHAPES))
    if unknown or re.search(r"\ble\s*(=|!)", code) or "histogram_quantile" in code:
        raise UnreviewedError(f"not reviewed for Prometheus 3: {', '.join(unknown) or 'le'}")
    if _SUBQUERY.search(code):
        found = [shape for shape in found if shape is not STEPS] + [SUBQUERY]
    return tuple(found) or (NEWEST,)


def reviewed(groups: Iterable[Group]) -> tuple[tuple[str, Rule, tuple[Shape, ...]], ...]:
    """Return group name, rule and shapes of each rule."""
    return tuple((group.name, rule, shapes(rule.expr)) for group in groups for rule in group.rules)
