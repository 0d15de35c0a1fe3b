"""The evaluating thread gets the newest round of each flow, with the events of skipped ones."""

import threading
from types import SimpleNamespace
from typing import Any

from mm2slo_core.topology import Flow
from mm2slo_exporter.canary.canary_messages import RestoreFinished
from mm2slo_exporter.flow_observation import ClusterView, InternalsView, Observation, OffsetsRead
from mm2slo_exporter.flow_plan import FlowPlan
from mm2slo_exporter.service.exporter_service import RoundQueue

US_EU, EU_US = Flow("us", "eu"), Flow("eu", "us")


class Runner(SimpleNamespace):
    __hash__ = object.__hash__  # type: ignore[assignment]  # by identity, like FlowRunner


def runner(flow: Flow) -> Any:
    return Runner(flow=SimpleNamespace(flow=flow))


def read(at: float) -> OffsetsRead:
    """One of polls that are 5 s apart."""
    return OffsetsRead(
        requested_at=at - 0.5,
        answered_at=at,
        previous_requested_at=at - 5.5,
        previous_answered_at=at - 5.0,
    )


def observation(at: float, *events: Any, target: OffsetsRead | None = None) -> Observation:
    return Observation(
        at=at,
        plan=FlowPlan(),
        source=ClusterView(),
        target=ClusterView(),
        internals=InternalsView(),
        source_offsets=read(at),
        target_offsets=target,
        source_readable=True,
        target_readable=target is not None,
        canary_events=events,
    )


def test_take_returns_newest_round_of_each_flow_with_all_events() -> None:
    rounds, slow, other = RoundQueue(), runner(US_EU), runner(EU_US)
    first, second, third = (RestoreFinished("us->eu", at) for at in (1.0, 2.0, 3.0))
    outage = read(90.0)
    put = [
        rounds.put(slow, observation(100.0, first, target=outage)),
        rounds.put(other, observation(101.0)),
        rounds.put(slow, observation(105.0, second, target=outage)),
        rounds.put(slow, observation(110.0, third, target=read(110.0))),
    ]
    assert put == [False, False, True, True]
    (found_slow, seen), (found_other, unskipped) = rounds.take(0)
    assert (found_slow, found_other) == (slow, other)
    assert unskipped == observation(101.0)
    assert seen.at == 110.0
    assert seen.canary_events == (first, second, third)
    assert seen.source_offsets is not None
    assert seen.source_offsets.answered_at == 110.0
    assert seen.source_offsets.previous_answered_at == 95.0
    assert seen.target_offsets is not None
    assert seen.target_offsets.answered_at == 110.0
    assert seen.target_offsets.previous_answered_at == 85.0
    assert (rounds.skipped(US_EU), rounds.skipped(EU_US)) == (2, 0)
    assert rounds.take(0) == []


def test_round_after_take_is_not_skipped() -> None:
    rounds, flow = RoundQueue(), runner(US_EU)
    for at in (100.0, 105.0):
        assert not rounds.put(flow, observation(at))
        assert rounds.take(0) == [(flow, observation(at))]
    assert rounds.skipped(US_EU) == 0


def test_take_waits_for_first_round() -> None:
    rounds, flow = RoundQueue(), runner(US_EU)
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.extend(rounds.take(60)))
    waiting.start()
    rounds.put(flow, observation(100.0))
    waiting.join(60)
    assert found == [(flow, observation(100.0))]
