"""Which records still have their counterpart on the other side."""

from mm2slo_audit.scope.scope_assembly import CopyMap
from mm2slo_core.offset_translation import SyncRuns


def copy_map(
    *syncs: tuple[int, int],
    copies_start: int = 0,
    known_from: int = 0,
    committed: bool = False,
    dense: bool = True,
    at_source_start: int | None = None,
    at_target_start: int | None = None,
) -> CopyMap:
    runs = SyncRuns(dense=dense)
    for sync in syncs:
        runs.add(*sync)
    return CopyMap(
        runs=runs if syncs else None,
        copies_start=copies_start,
        known_from=known_from,
        committed=committed,
        dense=dense,
        source_end=1000,
        target_end=900,
        at_source_start=at_source_start,
        at_target_start=at_target_start,
    )


def test_auditable_from_complete_source_is_zero() -> None:
    assert copy_map((0, 0), (500, 500)).auditable_from(0) == 0
    # Independent of whether a sync of its first record remains.
    assert copy_map((40, 30), (500, 490)).auditable_from(0) == 0


def test_auditable_from_excludes_copies_of_earlier_log() -> None:
    assert copy_map((0, 300), (500, 800), copies_start=300).auditable_from(0) == 300
    assert copy_map((0, 300), (500, 800), copies_start=300).auditable_from(40) == 340


def test_auditable_from_excludes_copies_of_removed_records() -> None:
    # 40 records lie before the flow started, so target record 60 is source record 100.
    assert copy_map((40, 0), (500, 460)).auditable_from(100) == 60
    assert copy_map((40, 0), (500, 460)).auditable_from(20) == 0


def test_auditable_from_not_dense_uses_next_sync() -> None:
    assert copy_map((0, 0), (500, 510), dense=False).auditable_from(100) == 510
    assert copy_map((0, 0), dense=False).auditable_from(100) == 900


def test_auditable_from_without_syncs_uses_time_of_first_record() -> None:
    assert copy_map(at_source_start=250).auditable_from(100) == 250
    assert copy_map().auditable_from(100) == 900


def test_judged_from_excludes_copies_removed_on_target() -> None:
    assert copy_map((40, 0), (500, 460), known_from=40).judged_from(0) == 40
    assert copy_map((40, 0), (500, 460), known_from=40).judged_from(60) == 100
    # After the last sync copies are contiguous.
    assert copy_map((40, 0), (500, 460)).judged_from(470) == 510
    assert copy_map((40, 0), (500, 460), dense=False).judged_from(470) == 1000


def test_judged_from_before_oldest_sync_starts_at_sync() -> None:
    assert copy_map((40, 30), (500, 490), known_from=10).judged_from(20) == 40
    assert copy_map(at_target_start=77).judged_from(20) == 77
    assert copy_map().judged_from(20) == 1000


def test_judged_from_with_commit_and_complete_target_is_zero() -> None:
    # Wherever the flow started, and whatever syncs remain: nothing was removed from the target.
    assert copy_map((40, 0), (500, 460), known_from=40, committed=True).judged_from(0) == 0
    assert copy_map(known_from=71, committed=True).judged_from(0) == 0
    assert copy_map((40, 0), (500, 460), known_from=40).judged_from(0) == 40


def test_judged_from_with_commit_excludes_copies_removed_on_target() -> None:
    assert copy_map((40, 0), (500, 460), known_from=40, committed=True).judged_from(20) == 60
    # Without syncs the records of removed copies are only known by time, which may step back.
    assert copy_map(known_from=71, committed=True, at_target_start=5).judged_from(20) == 71
