"""Reading a topic to its end, and on until its reader has seen enough."""

from typing import Any

import pytest

from mm2slo_audit.scope import flow_topic_reader
from mm2slo_audit.scope.flow_topic_reader import read_to_end
from mm2slo_kafka.tailed_topic import TailBatch, TailRecord, TailState


class Tail:
    """Has read to the initial end at once; a record arrives with each poll."""

    state = TailState.READING
    caught_up = True

    def __init__(self, *_arguments: object, **_options: object) -> None:
        self.position: dict[int, int | None] = {0: 0}

    def poll(self, _count: int, _timeout: float) -> TailBatch:
        offset = self.position[0] or 0
        self.position[0] = offset + 1
        return TailBatch([TailRecord(0, offset, 0, b"", b"", None)], None, None)

    def close(self) -> None:
        pass


def test_reading_goes_on_until_it_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_topic_reader, "TopicTail", Tail)
    client: Any = None
    found = read_to_end(client, "offsets", is_enough=lambda positions: positions[0] == 3)
    assert [each.offset for each in found] == [0, 1, 2]
    assert [each.offset for each in read_to_end(client, "offsets")] == [0]


def test_reading_ends_in_time_if_it_is_never_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_topic_reader, "TopicTail", Tail)
    monkeypatch.setattr(flow_topic_reader, "_SETTLE_SECONDS", -1.0)
    client: Any = None
    assert len(list(read_to_end(client, "offsets", is_enough=lambda _positions: False))) == 1
