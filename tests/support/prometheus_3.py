"""Kinds of expressions (shapes) that were reviewed for Prometheus 3: docs/prometheus-3.md.

A function that belongs to no shape raises an error until it is reviewed.
"""

import re
from typing import Final

STEPS: Final = "sum of steps"
SUBQUERY: Final = "subquery"
NEWEST: Final = "newest"

_SHAPES: Final = {
    "growth": {"increase", "rate", "resets", "changes"},
    STEPS: {"sum_over_time", "count_over_time"},
    "last value": {"last_over_time"},
    "recent past": {"present_over_time", "max_over_time", "min_over_time"},
    "trend": {"predict_linear", "deriv", "delta"},
    "absence": {"absent"},
}
"""Functions by shape."""

_PLAIN: Final = {
    *("abs", "clamp_min", "clamp_max", "label_replace", "time", "timestamp", "vector"),
    *("avg", "bottomk", "count", "group", "max", "min", "sum", "topk"),
}
"""Functions and aggregations that are the same in both versions."""

_KEYWORDS: Final = {
    *("and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right"),
}
_CALL: Final = re.compile(r"\b([a-z_]+)\s*\(")
_SUBQUERY: Final = re.compile(r"\[[0-9a-z]+:[0-9a-z]*\]")
_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


class UnreviewedError(ValueError):
    """A rule uses a function that was not reviewed for Prometheus 3."""


def shapes(expr: str) -> tuple[str, ...]:
    """The shapes of *expr*. Raises UnreviewedError for a function without a shape."""
    code = _TEXT.sub('""', expr)
    called = set(_CALL.findall(code)) - _KEYWORDS - _PLAIN
    found = [shape for shape, functions in _SHAPES.items() if functions & called]
    unknown = called.difference(*_SHAPES.values())
    if unknown or re.search(r"\ble\s*(=|!)", code) or "histogram_quantile" in code:
        raise UnreviewedError(f"not reviewed for Prometheus 3: {', '.join(unknown) or 'le'}")
    if _SUBQUERY.search(code):
        found = [shape for shape in found if shape != STEPS] + [SUBQUERY]
    return tuple(found) or (NEWEST,)
