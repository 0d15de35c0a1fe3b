"""Every bound that an audit reports of a 1 % sample contains the true value in 95 % of samples."""

from dataclasses import replace

import pytest
from accuracy.bound_coverage import FAULTS, Coverage, coverage, population, true_values
from generated_units import Faults

FEW_FAULTS = replace(FAULTS, lost=1, moved=1, duplicate=1, replays=(), tail=0)
NONE_LOST = replace(FEW_FAULTS, lost=0)
THREE_COPIES, FOUR_COPIES = (replace(FAULTS, duplicates_each=copies) for copies in (2, 3))
RARE = {
    "copies in another partition than their key",
    "records out of order within their key",
}
"""Few samples have ten broken keys, which such an interval requires."""


def covered(faults: Faults, samples: int) -> dict[str, Coverage]:
    generated = population(faults)
    found = coverage(generated, range(1, samples + 1))
    for what, each in found.items():
        print(f"{what}: true {each.true:.4f}, {each.inside} of {each.samples} inside")
    # A sample of 240 records has no p99.
    high = {"latency p99", "latency p99.9"}
    assert true_values(generated).keys() - found.keys() <= high | RARE
    assert all(each.samples == samples for what, each in found.items() if what not in RARE)
    return found


@pytest.mark.parametrize("faults", [FAULTS, FEW_FAULTS, NONE_LOST, THREE_COPIES, FOUR_COPIES])
def test_bounds_of_samples_contain_true_values(faults: Faults) -> None:
    assert all(each.share >= 0.9 for each in covered(faults, 20).values())


@pytest.mark.long
@pytest.mark.parametrize("faults", [FAULTS, FEW_FAULTS, NONE_LOST, THREE_COPIES, FOUR_COPIES])
def test_bounds_of_1000_samples_contain_true_values_in_95_percent(faults: Faults) -> None:
    found = covered(faults, 1_000)
    assert {what: each.share for what, each in found.items() if each.share < 0.95} == {}
    if faults is FAULTS:
        # Narrower bounds would fail.
        for what in ("loss", "duplication", "moved", "broken affinity"):
            assert found[what].inside_half < 0.75 * found[what].samples
            assert found[what].mean_upper < 5 * found[what].true + 0.03
