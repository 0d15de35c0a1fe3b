from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.canary_ledger import SequenceSet


@given(numbers=st.lists(st.integers(0, 12), max_size=40))
def test_sequence_set_equals_python_set(numbers: list[int]) -> None:
    sequences, plain = SequenceSet(), set[int]()
    for number in numbers:
        assert sequences.add(number) is (number not in plain)
        plain.add(number)
        assert all((n in sequences) is (n in plain) for n in range(-1, 14))
    assert sequences.runs == sum(number - 1 not in plain for number in plain)


def test_add_that_closes_gap_merges_runs() -> None:
    sequences = SequenceSet()
    for number in (0, 1, 3, 4, 2):
        sequences.add(number)
    assert sequences.runs == 1


def test_consecutive_numbers_are_one_run() -> None:
    sequences = SequenceSet()
    for number in range(100_000):
        sequences.add(number)
    assert sequences.runs == 1


def test_run_limit_closes_oldest_gap() -> None:
    sequences = SequenceSet(run_limit=3)
    for number in (0, 10, 20, 30):
        sequences.add(number)
    assert sequences.runs == 3
    assert 5 in sequences
    assert 15 not in sequences
