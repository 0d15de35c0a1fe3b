"""Bounds from log starts and the start of the window."""

from dataclasses import replace

import pytest
from small_audit_unit import scope

from mm2slo_audit.scope.scope_assembly import (
    CopyMap,
    apply_bounds,
    apply_log_starts,
    without_timestamps,
)
from mm2slo_core.audit.audit_scope import UnitScope
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.offset_translation import SyncRuns


def read_from_200(identity: Identity) -> UnitScope:
    unit = scope(identity=identity)
    (flow,) = unit.flows
    partitions = tuple(replace(each, read_from=200) for each in flow.partitions)
    return replace(unit, flows=(replace(flow, partitions=partitions),))


def straight(*, synced: bool = True) -> CopyMap:
    runs = SyncRuns()
    runs.add(0, 100)
    runs.add(900, 1_000)
    return CopyMap(
        runs if synced else None,
        copies_start=0,
        known_from=0,
        dense=True,
        source_end=1_000,
        target_end=1_100,
    )


@pytest.mark.parametrize(
    ("identity", "synced", "expected"),
    [
        # The copy of a record before the window is itself before it, by its timestamp.
        (Identity(), True, 0),
        # With a new timestamp it may be in the window: its source record is not read.
        (Identity().without_timestamp(), True, 300),
        # Its offset is unknown.
        (Identity().without_timestamp(), False, 0),
    ],
)
def test_apply_bounds_copies_of_records_before_window(
    identity: Identity,
    synced: bool,
    expected: int,
) -> None:
    found = apply_bounds(read_from_200(identity), {(0, 0): straight(synced=synced)})
    assert found.partitions[0].auditable_from == expected


def test_apply_log_starts_raises_auditable_from() -> None:
    unit = read_from_200(Identity().without_timestamp())
    found = apply_log_starts(unit, {(0, 0): straight()}, {0: {0: 400}}, {})
    assert found.partitions[0].auditable_from == 500


@pytest.mark.parametrize(("synced", "read_from"), [(True, 300), (False, 0)])
def test_without_timestamps_reads_copies_that_precede_the_window(
    synced: bool, read_from: int
) -> None:
    unit = read_from_200(Identity())
    late = tuple(replace(each, read_from=350) for each in unit.partitions)
    copies = {(0, number): straight(synced=synced) for number in (0, 1)}
    found = without_timestamps(replace(unit, partitions=late), copies)
    assert not found.identity.timestamp
    assert [each.read_from for each in found.partitions] == [read_from] * 2
    assert found.bucketed is synced
    assert found.partitions[0].auditable_from == (300 if synced else 0)
