"""Counts of spans: what is left without planned maintenance."""

import random

from mm2slo_core.reporting.step_counts import SpanCounts


def steps(chance: random.Random, number: int) -> list[SpanCounts]:
    """Steps of fractional events, as means of three replicas are."""
    return [
        SpanCounts.of_steps(300 - bad, bad, chance.randrange(4) / 3, 1)
        for bad in (chance.randrange(4) / 3 for _ in range(number))
    ]


def test_nothing_is_left_of_a_span_in_two_maintenances() -> None:
    chance = random.Random(7)
    for _ in range(200):
        each = steps(chance, chance.randrange(2, 40))
        cut = chance.randrange(1, len(each))
        whole, first, second = (sum(part, SpanCounts()) for part in (each, each[:cut], each[cut:]))
        assert whole - (first + second) == SpanCounts()


def test_a_good_step_is_left_without_bad_events() -> None:
    chance = random.Random(7)
    good = SpanCounts.of_steps(300, 0, 0, 1)
    for _ in range(200):
        each = steps(chance, chance.randrange(2, 40))
        left = sum([*each, good], SpanCounts()) - sum(reversed(each), SpanCounts())
        assert (left.bad, left.unknown, left.minutes) == (0.0, 0.0, good.minutes)
        assert abs(left.total - 300.0) < 1e-6
