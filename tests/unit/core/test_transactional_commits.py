"""Transaction markers among the commits of source offsets."""

from mm2slo_core.offset_translation import TransactionalCommits


def commits(*written: tuple[int, str], partition: int = 0) -> TransactionalCommits:
    found = TransactionalCommits()
    for offset, committed in written:
        found.add(partition, offset, float(offset), committed)
    return found


def test_marker_after_newest_commit_shows_transactions() -> None:
    found = commits((0, "orders-0"), (1, "orders-1"))
    found.read_up_to({0: 2})
    assert found.found is None  # the marker may follow
    found.read_up_to({0: 3})
    assert found.found is True


def test_commits_of_one_partition_without_marker_between_show_none() -> None:
    found = commits((7, "orders-0"), (8, "orders-1"), (9, "orders-0"))
    assert found.found is False


def test_gaps_of_compaction_between_commits_show_nothing() -> None:
    found = commits((7, "orders-0"), (9, "orders-1"), (42, "orders-0"))
    found.read_up_to({0: 43})
    assert found.found is None


def test_marker_in_another_partition_than_the_newest_commit_is_old() -> None:
    """Exactly-once support was switched off: partitions that no longer move keep their markers."""
    found = commits((0, "idle-0"))
    found.add(1, 10, 100.0, "orders-0")
    found.read_up_to({0: 2, 1: 11})
    assert found.found is None


def test_transactions_are_found_again_after_a_worker_without_them() -> None:
    found = commits((0, "orders-0"), (1, "orders-0"))
    assert found.found is False
    found.add(0, 2, 3.0, "orders-0")
    found.read_up_to({0: 4})
    assert found.found is True


def test_clear_forgets_what_was_found() -> None:
    found = commits((0, "orders-0"))
    found.read_up_to({0: 2})
    found.clear()
    found.read_up_to({0: 2})
    assert found.found is None
