"""Key cells: exact up to the limit, and exact totals beyond it."""

import random
from itertools import pairwise

import pytest

from mm2slo_core.audit.unit_outcome import MAX_CELLS, AffinityOutcome, KeyCell, pool_key_cells


def test_pool_key_cells_merges_equal_keys() -> None:
    keys = [KeyCell(1, 3, 3, 1), KeyCell(1, 2, 2), KeyCell(1, 3, 3, 1), KeyCell(1, 3, 3)]
    assert pool_key_cells(keys) == (
        KeyCell(1, 2, 2),
        KeyCell(1, 3, 3),
        KeyCell(2, 6, 6, 2),
    )
    assert pool_key_cells([]) == ()


def test_pool_key_cells_of_two_outcomes_equals_all_keys() -> None:
    draw = random.Random(5)
    keys = [KeyCell(1, n := draw.randint(1, 9), n, draw.choice((0, 0, n))) for _ in range(300)]
    assert pool_key_cells(
        [*pool_key_cells(keys[:100]), *pool_key_cells(keys[100:])]
    ) == pool_key_cells(keys)


def test_pool_key_cells_within_limit_is_exact() -> None:
    keys = [KeyCell(1, size, size) for size in range(1, MAX_CELLS + 1)]
    assert pool_key_cells(keys) == tuple(keys)
    assert len(pool_key_cells([*keys, KeyCell(1, 600, 600)])) < MAX_CELLS


@pytest.mark.parametrize(("limit", "doublings"), [(MAX_CELLS, 1 / 16), (100, 1 / 4), (16, 4)])
def test_pool_key_cells_beyond_limit_merges_similar_keys_and_keeps_totals(
    limit: int, doublings: float
) -> None:
    keys = [KeyCell(1, size, size, size * (size % 3 == 0)) for size in range(1, 5_000)]
    cells = pool_key_cells(keys, limit)
    assert limit / 2 < len(cells) <= limit
    assert AffinityOutcome(cells=cells).total == AffinityOutcome(cells=tuple(keys)).total
    # An event is never distributed to keys without one.
    assert sum(cell.keys for cell in cells if cell.moved) == sum(key.moved > 0 for key in keys)
    quiet = sorted(cell.copies / cell.keys for cell in cells if not cell.moved)
    # There are fewer small sizes than buckets.
    large = [size for size in quiet if size > 100]
    assert all(later / earlier < 2 ** (2 * doublings) for earlier, later in pairwise(large))


def test_pool_key_cells_with_extreme_sizes_stays_within_limit() -> None:
    draw = random.Random(6)
    sizes = [[draw.choice((0, 1 << draw.randrange(40))) for _ in range(4)] for _ in range(1_000)]
    keys = [KeyCell(1, *each) for each in sizes]
    assert len(pool_key_cells(keys, 16)) <= 16
