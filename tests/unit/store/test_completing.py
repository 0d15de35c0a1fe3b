"""How one more window changes how far a topic is complete."""

from __future__ import annotations

import pytest

from mm2slo_core.audit.scope import Window
from mm2slo_store.completing import Span, advanced, passed

KNOWN = Span(100, 200)


@pytest.mark.parametrize(
    ("known", "window", "reached", "expected"),
    [
        pytest.param(None, (10, 20), 20, Span(10, 20), id="the first window"),
        pytest.param(None, (10, 20), 15, Span(10, 15), id="the first, with an open record"),
        pytest.param(KNOWN, (200, 300), 300, Span(100, 300), id="the next"),
        pytest.param(KNOWN, (150, 300), 300, Span(100, 300), id="the next, overlapping"),
        pytest.param(KNOWN, (200, 300), 250, Span(100, 250), id="the next, with an open record"),
        pytest.param(KNOWN, (200, 300), 200, Span(100, 200), id="the next, open from its start"),
        pytest.param(KNOWN, (201, 300), 300, KNOWN, id="a gap before it"),
        pytest.param(KNOWN, (50, 100), 100, Span(50, 200), id="the one before"),
        pytest.param(KNOWN, (50, 99), 99, KNOWN, id="a gap behind it"),
        pytest.param(KNOWN, (50, 150), 70, KNOWN, id="the one before, with an open record"),
        pytest.param(KNOWN, (120, 180), 180, KNOWN, id="within"),
        pytest.param(KNOWN, (120, 180), 130, Span(100, 130), id="within, open after all"),
        pytest.param(KNOWN, (50, 400), 400, Span(50, 400), id="around"),
    ],
)
def test_windows_form_a_chain(
    known: Span | None, window: tuple[int, int], reached: int, expected: Span
) -> None:
    assert advanced(known, Window(*window), reached, restarts=False) == expected


def test_a_chain_begins_anew_behind_what_is_gone() -> None:
    assert advanced(KNOWN, Window(500, 600), 550, restarts=True) == Span(500, 550)


def test_a_window_that_meets_the_chain_never_begins_it_anew() -> None:
    assert advanced(KNOWN, Window(120, 180), 180, restarts=True) == KNOWN
    assert advanced(KNOWN, Window(200, 300), 300, restarts=True) == Span(100, 300)


@pytest.mark.parametrize(
    ("window", "gone", "expected"),
    [
        pytest.param((200, 300), False, Span(100, 300), id="no record in the next"),
        pytest.param((201, 300), False, KNOWN, id="no record, and a gap before it"),
        pytest.param((150, 300), True, Span(300, 300), id="gone"),
        pytest.param((250, 300), True, Span(300, 300), id="gone, and what precedes it"),
        pytest.param((50, 150), True, KNOWN, id="gone, and judged before"),
    ],
)
def test_what_has_nothing_to_be_judged_is_passed_over(
    window: tuple[int, int],
    gone: bool,
    expected: Span,
) -> None:
    assert passed(KNOWN, Window(*window), gone=gone) == expected
