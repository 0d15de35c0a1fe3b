"""Samples of series: constant, varying or rising, a few kinds of each.

The cost of a query depends on the number of samples, hardly on their values.
"""

import random
from functools import cache
from typing import Final

from tsdb import MAX_SAMPLES, SamplePattern

_LENGTH: Final = 4 * MAX_SAMPLES
KINDS: Final = 8
"""The number of patterns of each kind."""


@cache
def constant(value: float, step: int) -> SamplePattern:
    """Always *value*."""
    return SamplePattern(step, (value,) * _LENGTH)


@cache
def varying(kind: int, step: int) -> SamplePattern:
    """Random integers up to a bound by kind."""
    draw = random.Random(kind)
    return SamplePattern(
        step, tuple(float(draw.randrange(10 * (kind + 1))) for _ in range(_LENGTH))
    )


@cache
def rising(kind: int, step: int) -> SamplePattern:
    """A counter that resets after a while."""
    return SamplePattern(step, tuple(float(n * (kind + 1)) for n in range(_LENGTH)))


@cache
def share(kind: int, step: int, *, base: float) -> SamplePattern:
    """A ratio at *base* that differs from it now and then."""
    draw = random.Random(kind)
    values: list[float] = []
    while len(values) < _LENGTH:
        value = base + draw.uniform(-0.5, 0.5) if draw.random() < 0.1 else base
        values += [value] * 12
    return SamplePattern(step, tuple(values[:_LENGTH]))
