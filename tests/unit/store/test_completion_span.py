"""How another window changes the span in which a topic is complete."""

import pytest

from mm2slo_core.audit.audit_scope import Window
from mm2slo_store.audit_rows import CompletionSpan, extend_completion, skip_window

KNOWN = CompletionSpan(100, 200)


@pytest.mark.parametrize(
    ("known", "window", "reached", "expected"),
    [
        pytest.param(None, (10, 20), 20, CompletionSpan(10, 20), id="the first window"),
        pytest.param(
            None, (10, 20), 15, CompletionSpan(10, 15), id="the first, with an open record"
        ),
        pytest.param(KNOWN, (200, 300), 300, CompletionSpan(100, 300), id="the next"),
        pytest.param(KNOWN, (150, 300), 300, CompletionSpan(100, 300), id="the next, overlapping"),
        pytest.param(
            KNOWN, (200, 300), 250, CompletionSpan(100, 250), id="the next, with an open record"
        ),
        pytest.param(
            KNOWN, (200, 300), 200, CompletionSpan(100, 200), id="the next, open from its start"
        ),
        pytest.param(KNOWN, (201, 300), 300, KNOWN, id="a gap before it"),
        pytest.param(KNOWN, (50, 100), 100, CompletionSpan(50, 200), id="the one before"),
        pytest.param(KNOWN, (50, 99), 99, KNOWN, id="a gap behind it"),
        pytest.param(KNOWN, (50, 150), 70, KNOWN, id="the one before, with an open record"),
        pytest.param(KNOWN, (120, 180), 180, KNOWN, id="within"),
        pytest.param(KNOWN, (120, 180), 130, CompletionSpan(100, 130), id="within, open after all"),
        pytest.param(KNOWN, (50, 400), 400, CompletionSpan(50, 400), id="around"),
    ],
)
def test_extend_completion_keeps_the_span_contiguous(
    known: CompletionSpan | None, window: tuple[int, int], reached: int, expected: CompletionSpan
) -> None:
    assert extend_completion(known, Window(*window), reached, restarts=False) == expected


def test_extend_completion_restarts_after_expired_records() -> None:
    assert extend_completion(KNOWN, Window(500, 600), 550, restarts=True) == CompletionSpan(
        500, 550
    )


def test_extend_completion_adjacent_window_never_restarts() -> None:
    assert extend_completion(KNOWN, Window(120, 180), 180, restarts=True) == KNOWN
    assert extend_completion(KNOWN, Window(200, 300), 300, restarts=True) == CompletionSpan(
        100, 300
    )


@pytest.mark.parametrize(
    ("window", "gone", "expected"),
    [
        pytest.param((200, 300), False, CompletionSpan(100, 300), id="no record in the next"),
        pytest.param((201, 300), False, KNOWN, id="no record, and a gap before it"),
        pytest.param((150, 300), True, CompletionSpan(300, 300), id="gone"),
        pytest.param((250, 300), True, CompletionSpan(300, 300), id="gone, and what precedes it"),
        pytest.param((50, 150), True, KNOWN, id="gone, and judged before"),
    ],
)
def test_skip_window_advances_over_empty_and_expired_windows(
    window: tuple[int, int],
    gone: bool,
    expected: CompletionSpan,
) -> None:
    assert skip_window(KNOWN, Window(*window), gone=gone) == expected
