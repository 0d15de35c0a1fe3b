"""Reading the timeline's topics with bounded memory."""

from typing import Any, NamedTuple

import pytest

from mm2slo_audit.scope import flow_topic_reader
from mm2slo_audit.scope.flow_topic_reader import read_timeline
from mm2slo_core.records.timeline_record import PollTimes, Side, WatermarkRecord
from mm2slo_core.topology import Flow

FLOW = Flow("us", "eu")
KEY = (FLOW, Side.TARGET, "us.orders")
CLIENT: Any = None


class Raw(NamedTuple):
    key: bytes
    value: bytes


def arrivals(count: int) -> list[Raw]:
    """One record of one partition per quarter of a second."""
    records = [
        WatermarkRecord(
            flow=FLOW,
            side=Side.TARGET,
            topic="us.orders",
            topic_id="id",
            isolation="read_uncommitted",
            times=PollTimes(at, at, at - 0.25, at - 0.25),
            partitions=(0,),
            ends=(number + 1,),
            arrived=(1,),
        )
        for number in range(count)
        if (at := 100 + number / 4)
    ]
    return [Raw(each.encode_key(), each.encode_value()) for each in records]


def test_reading_joins_brackets_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_topic_reader, "read_to_end", lambda *_a, **_k: arrivals(1_000))
    every = read_timeline(CLIENT, "arrivals", 0, {KEY})[KEY].partitions[0].polls
    assert len(every) == 1_001
    joined = read_timeline(CLIENT, "arrivals", 0, {KEY}, max_polls=100)[KEY].partitions[0].polls
    assert 25 <= len(joined) <= 100
    widths = [poll.latest - poll.earliest for poll in joined if poll.earliest is not None]
    assert max(widths) == 8_000
    assert joined[-1].end == every[-1].end == 1_000


def test_reading_ends_at_the_given_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_topic_reader, "read_to_end", lambda *_a, **_k: arrivals(1_000))
    found = read_timeline(CLIENT, "arrivals", 0, {KEY}, until=110.0)[KEY].partitions[0].polls
    assert found[-1].latest == 110_000
