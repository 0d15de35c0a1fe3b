"""Exclusions in reports and in recording rules."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.objectives.exclusion import (
    Exclusion,
    ExclusionMark,
    ExclusionState,
    Span,
    excluded_from_reports,
    excluded_from_rules,
    find_overlap,
    merge_spans,
)
from mm2slo_core.topology import Flow

US_EU, EU_US, AP_EU = Flow("us", "eu"), Flow("eu", "us"), Flow("ap", "eu")
PLANNED = Exclusion(
    id="x1",
    flows=("us->eu",),
    start=1_000,
    end=2_000,
    reason="upgrade of eu",
    who="ana",
    added_at=500,
)


@pytest.mark.parametrize(
    ("added_at", "removed_at", "reports", "rules", "mark"),
    [
        (500, None, Span(1_000, 2_000), Span(1_000, 2_000), None),
        (1_000, None, Span(1_000, 2_000), Span(1_000, 2_000), None),  # added as it starts
        (1_001, None, Span(1_000, 2_000), Span(1_001, 2_000), ExclusionMark.ADDED_LATE),
        (2_000, None, Span(1_000, 2_000), None, ExclusionMark.ADDED_LATE),  # added after its end
        (500, 900, None, None, None),  # removed before it started
        (500, 1_000, None, None, None),
        (500, 1_400, Span(1_000, 1_400), Span(1_000, 1_400), None),  # ended early
        (1_200, 1_400, Span(1_000, 1_400), Span(1_200, 1_400), ExclusionMark.ADDED_LATE),
        (500, 1_999, Span(1_000, 1_999), Span(1_000, 1_999), None),
        (500, 2_000, None, Span(1_000, 2_000), ExclusionMark.REMOVED_LATE),
        (2_500, 3_000, None, None, None),  # never excluded
    ],
)
def test_exclusion_in_reports_and_rules_with_mark(
    added_at: int,
    removed_at: int | None,
    reports: Span | None,
    rules: Span | None,
    mark: ExclusionMark,
) -> None:
    found = replace(PLANNED, added_at=added_at, removed_at=removed_at)
    assert (found.in_reports, found.in_rules, found.mark) == (reports, rules, mark)


@pytest.mark.parametrize(
    ("now", "removed_at", "state"),
    [
        (999, None, ExclusionState.PLANNED),
        (1_000, None, ExclusionState.RUNNING),
        (1_999, None, ExclusionState.RUNNING),
        (2_000, None, ExclusionState.PAST),
        (1_500, 1_400, ExclusionState.PAST),  # ended early
        (1_500, 900, ExclusionState.REMOVED),
        (3_000, 2_500, ExclusionState.REMOVED),  # removed late
    ],
)
def test_exclusion_state(now: int, removed_at: int | None, state: ExclusionState) -> None:
    assert replace(PLANNED, removed_at=removed_at).state(now) is state


@pytest.mark.parametrize(
    ("patterns", "flows"),
    [
        (("us->eu",), [US_EU]),
        (("*",), [US_EU, EU_US, AP_EU]),
        (("*->eu",), [US_EU, AP_EU]),
        (("us->*", "*->us"), [US_EU, EU_US]),
        (("us",), []),
    ],
)
def test_exclusion_covers_flows_by_pattern(patterns: tuple[str, ...], flows: list[Flow]) -> None:
    found = replace(PLANNED, flows=patterns)
    assert [flow for flow in (US_EU, EU_US, AP_EU) if found.covers(flow)] == flows


def test_exclusion_of_an_empty_span_raises() -> None:
    with pytest.raises(ValueError, match=r"\[1000, 1000\) ms is empty"):
        replace(PLANNED, end=1_000)


def test_merge_spans_joins_overlapping_and_adjacent_spans() -> None:
    spans = [Span(50, 60), Span(0, 10), Span(10, 20), Span(15, 18), Span(30, 40)]
    assert merge_spans(spans) == (Span(0, 20), Span(30, 40), Span(50, 60))


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20))))
def test_merge_spans_keeps_exactly_the_same_time(pairs: list[tuple[int, int]]) -> None:
    spans = [Span(start, start + length) for start, length in pairs]
    found = merge_spans(spans)
    expected = {moment for span in spans for moment in range(span.start, span.end)}
    assert {moment for span in found for moment in range(span.start, span.end)} == expected
    assert sum(span.end - span.start for span in found) == len(expected)


def test_excluded_time_of_a_flow() -> None:
    exclusions = [
        PLANNED,
        replace(PLANNED, id="x2", flows=("*",), start=1_900, end=2_500),
        replace(PLANNED, id="x3", start=5_000, end=6_000, added_at=5_200),
        replace(PLANNED, id="x4", start=8_000, end=9_000, removed_at=9_500),
    ]
    assert excluded_from_reports(exclusions, US_EU) == (Span(1_000, 2_500), Span(5_000, 6_000))
    assert excluded_from_rules(exclusions, US_EU) == (
        Span(1_000, 2_500),
        Span(5_200, 6_000),
        Span(8_000, 9_000),
    )
    assert excluded_from_reports(exclusions, EU_US) == (Span(1_900, 2_500),)


@pytest.mark.parametrize(
    ("patterns", "start", "end", "removed_at", "found"),
    [
        (("us->eu",), 1_999, 3_000, None, US_EU),
        (("*",), 0, 1_001, None, US_EU),
        (("us->eu",), 2_000, 3_000, None, None),  # adjacent
        (("us->eu",), 0, 1_000, None, None),
        (("eu->us",), 1_000, 2_000, None, None),  # another flow
        (("us->eu",), 1_500, 3_000, 1_400, None),  # the existing one was ended before
    ],
)
def test_find_overlap_returns_existing_exclusion_and_flow(
    patterns: tuple[str, ...], start: int, end: int, removed_at: int | None, found: Flow | None
) -> None:
    former = replace(PLANNED, removed_at=removed_at)
    new = replace(PLANNED, id="x2", flows=patterns, start=start, end=end, added_at=0)
    expected = None if found is None else (former, found)
    assert find_overlap(new, [former], [US_EU, EU_US, AP_EU]) == expected
