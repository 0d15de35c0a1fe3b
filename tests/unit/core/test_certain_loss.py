"""CertainLoss and its invariants, by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.certain_loss import CertainLoss, SavedLoss


def losses(*samples: tuple[float, int, int]) -> list[int]:
    """Total after each sample of (at, next offset, log start), with a live position."""
    loss = CertainLoss()
    totals = []
    for at, next_offset, log_start in samples:
        loss.observe(at, next_offset, log_start)
        totals.append(loss.total)
    return totals


@pytest.mark.parametrize(
    ("case", "samples", "totals"),
    [
        ("removed below the position", [(0, 500, 100), (30, 500, 500)], [0, 0]),
        ("one sample proves nothing", [(0, 100, 500)], [0]),
        ("the second confirms", [(0, 100, 500), (30, 100, 500)], [0, 400]),
        ("counted once", [(0, 100, 500), (30, 100, 500), (60, 100, 500)], [0, 400, 400]),
        (
            "retention continues while MM2 is stopped",
            [(0, 100, 500), (30, 100, 700), (60, 100, 700)],
            [0, 400, 600],
        ),
        (
            "MM2 restarts: its jump to the log start counts nothing twice",
            [(0, 100, 500), (30, 100, 500), (60, 510, 500), (90, 900, 500)],
            [0, 400, 400, 400],
        ),
        ("the first sample was stale", [(0, 100, 500), (30, 600, 500)], [0, 0]),
        ("half was still replicated", [(0, 100, 500), (30, 300, 500)], [0, 200]),
        (
            "a replay below the log start: replicated before",
            [(0, 800, 100), (30, 650, 700), (60, 650, 700)],
            [0, 0, 0],
        ),
    ],
)
def test_certain_loss(case: str, samples: list[tuple[float, int, int]], totals: list[int]) -> None:
    assert losses(*samples) == totals, case


def test_jump_over_gap_is_loss_minus_target_growth() -> None:
    loss = CertainLoss()
    loss.observe(0.0, 100, 500, target_end=1000)
    assert loss.observe(30.0, 520, 500, target_end=1020) == 400
    # The same jump, but the target grew by all of it: those records were replicated.
    copied = CertainLoss()
    copied.observe(0.0, 100, 500, target_end=1000)
    assert copied.observe(30.0, 520, 500, target_end=1420) == 0


def test_jump_after_confirmed_gap_counts_only_new_loss() -> None:
    loss = CertainLoss()
    loss.observe(0.0, 100, 500, target_end=1000)
    loss.observe(30.0, 100, 700, target_end=1000)
    assert loss.total == 400
    assert loss.observe(60.0, 720, 700, target_end=1020) == 200
    assert loss.total == 600


def test_committed_position_confirms_loss_after_its_period() -> None:
    loss = CertainLoss()
    # Committed every 60 s: the actual position is far ahead of both early samples.
    loss.observe(0.0, 100, 500, position_period=60.0)
    assert loss.observe(30.0, 100, 500, position_period=60.0) == 0
    assert loss.observe(60.0, 900, 500, position_period=60.0) == 0
    # This position does not advance.
    stopped = CertainLoss()
    stopped.observe(0.0, 100, 500, position_period=60.0)
    stopped.observe(30.0, 100, 500, position_period=60.0)
    assert stopped.observe(60.0, 100, 500, position_period=60.0) == 400


def test_certain_loss_continues_from_saved_state() -> None:
    first = CertainLoss()
    first.observe(0.0, 100, 500)
    first.observe(30.0, 100, 500)
    assert first.saved == SavedLoss(total=400, judged_to=500)
    second = CertainLoss()
    second.continue_from(first.saved)
    second.observe(60.0, 100, 600)
    second.observe(90.0, 100, 600)
    assert second.total == 500


def test_source_recreation_counts_no_loss_and_resets() -> None:
    loss = CertainLoss()
    loss.continue_from(SavedLoss(total=400, judged_to=1_000_000))
    loss.observe(0.0, 1_000_000, 900_000)
    loss.source_recreated()
    loss.observe(30.0, 0, 0)
    loss.observe(60.0, 0, 20)
    assert loss.total == 400
    loss.observe(90.0, 0, 20)
    assert loss.total == 420


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 60), st.integers(0, 50), st.booleans()),
        min_size=1,
        max_size=60,
    )
)
def test_certain_loss_keeps_its_invariants(
    steps: list[tuple[int, int, int, bool]],
) -> None:
    """A simulated partition: records are produced, replicated or not, and removed by retention."""
    end = position = start = target = truly = 0
    loss = CertainLoss()
    before = 0
    for at, (produced, copied, removed, stopped) in enumerate(steps):
        end += produced
        if not stopped:
            position = max(position, start)  # auto.offset.reset=earliest
            moved = min(copied, end - position)
            position += moved
            target += moved
        reached = min(start + removed, end)
        truly += max(0, reached - max(start, position))
        start = reached
        loss.observe(float(at), position, start, target_end=target)
        assert before <= loss.total, "A"
        assert loss.total <= truly, "B"
        assert loss.saved.judged_to >= position, "C"
        before = loss.total
    for extra in range(2):  # MM2 stays stopped: everything gets confirmed
        loss.observe(float(len(steps) + extra), position, start, target_end=target)
    assert loss.total == truly, "D"
