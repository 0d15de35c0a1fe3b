"""Scopes for a run: which of them begin anew, and how they are numbered when others go."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from audit_runs import CONFIG
from one_unit import scope

from mm2slo_audit.run import kafka_scoping
from mm2slo_audit.run.kafka_scoping import KafkaScoping
from mm2slo_audit.scoping import Isolations, Scoping

if TYPE_CHECKING:
    from mm2slo_audit.run.ports import Scoped
    from mm2slo_core.audit.scope import UnitScope


def unit(index: int, log_starts: tuple[int, int], read_from: tuple[int, int]) -> UnitScope:
    found = scope(index=index)
    (flow,) = found.flows
    partitions = tuple(
        replace(each, log_start=start, read_from=begin)
        for each, start, begin in zip(flow.partitions, log_starts, read_from, strict=True)
    )
    return replace(found, flows=(replace(flow, partitions=partitions),))


@pytest.fixture
def scoped(monkeypatch: pytest.MonkeyPatch) -> Scoped:
    scopes = (
        unit(0, (0, 5), (0, 6)),  # an older record is left in one of its partitions
        unit(1, (0, 5), (0, 5)),
        unit(2, (7, 0), (7, 0)),
    )
    found = Scoping(
        scopes=scopes,
        isolations=(Isolations(("read_uncommitted",), "read_uncommitted"),) * 3,
        copies=({}, {}, {}),
    )
    monkeypatch.setattr(kafka_scoping, "take_scopes", lambda *_args, **_more: found)
    return KafkaScoping(CONFIG).take(CONFIG.flows, (), SimpleNamespace())  # type: ignore[arg-type]


def test_completion_begins_anew_where_the_source_holds_nothing_older(scoped: Scoped) -> None:
    assert scoped.restarting == {1, 2}


def test_what_begins_anew_keeps_its_place_when_others_go(scoped: Scoped) -> None:
    fewer = KafkaScoping(CONFIG).without(scoped, {1})
    assert [each.index for each in fewer.scopes] == [0, 1]
    assert fewer.restarting == {1}
