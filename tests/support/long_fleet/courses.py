"""What series do: figures that are at rest, waver or rise, a few kinds of each.

What a query costs hangs on how many samples it reads, hardly on what they are.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Final

from tsdb import LONGEST, Course

_LENGTH: Final = 4 * LONGEST
KINDS: Final = 8
"""How many courses of each sort there are."""


@cache
def steady(value: float, step: int) -> Course:
    """Always *value*."""
    return Course(step, (value,) * _LENGTH)


@cache
def wavering(kind: int, step: int) -> Course:
    """Whole numbers up to a bound of the kind's own."""
    draw = random.Random(kind)
    return Course(step, tuple(float(draw.randrange(10 * (kind + 1))) for _ in range(_LENGTH)))


@cache
def rising(kind: int, step: int) -> Course:
    """A counter that starts anew after a while."""
    return Course(step, tuple(float(n * (kind + 1)) for n in range(_LENGTH)))


@cache
def share(kind: int, step: int, *, base: float) -> Course:
    """A ratio at *base* that leaves it for a while now and then."""
    draw = random.Random(kind)
    values: list[float] = []
    while len(values) < _LENGTH:
        away = base + draw.uniform(-0.5, 0.5) if draw.random() < 0.1 else base
        values += [away] * 12
    return Course(step, tuple(values[:_LENGTH]))
