"""What log starts, and the start of the window, mean for records without a counterpart."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from one_unit import scope

from mm2slo_audit.scope.copy_map import CopyMap
from mm2slo_audit.scope.scope_bounds import apply_bounds, apply_log_starts
from mm2slo_core.audit.record_identity import Identity
from mm2slo_core.flow_offsets import SyncRuns

if TYPE_CHECKING:
    from mm2slo_core.audit.audit_scope import UnitScope


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
        # The copy of a record from before the window is, by its own timestamp, not of it.
        (Identity(), True, 0),
        # Here it may be: its source record is below what is read.
        (Identity().without_timestamp(), True, 300),
        # Where it would be is not known.
        (Identity().without_timestamp(), False, 0),
    ],
)
def test_copies_of_what_precedes_the_window(
    identity: Identity,
    synced: bool,
    expected: int,
) -> None:
    found = apply_bounds(read_from_200(identity), {(0, 0): straight(synced=synced)})
    assert found.partitions[0].auditable_from == expected


def test_they_are_more_when_retention_has_moved_on() -> None:
    unit = read_from_200(Identity().without_timestamp())
    found = apply_log_starts(unit, {(0, 0): straight()}, {0: {0: 400}}, {})
    assert found.partitions[0].auditable_from == 500
