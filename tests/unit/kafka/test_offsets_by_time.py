from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.handles import HandleFactory
from mm2slo_kafka.offsets import OffsetReader

HERE = TopicPartition("orders", 0)
SINCE = 1_700_000_000.0


class Growing:
    """A partition whose records come between two requests, as their times in ms tell."""

    def __init__(self, log: list[int], *, arriving: list[int]) -> None:
        self.log = log
        self.arriving = arriving
        self.asked: list[int] = []

    def consumer(self, *_settings: object, **_options: object) -> Growing:
        return self

    def offsets_for_times(self, asked: list[Any], timeout: float) -> Any:
        assert timeout > 0
        [one] = asked
        self.asked.append(one.offset)
        answer = len(self.log) if one.offset == -1 else self._at(one.offset)
        self.log += [self.arriving.pop(0)] if self.arriving else []
        return [SimpleNamespace(topic="orders", partition=0, offset=answer, error=None)]

    def _at(self, moment: int) -> int:
        return next((k for k, at in enumerate(self.log) if at >= moment), -1)

    def poll(self, _timeout: float) -> int:
        return 0


@pytest.mark.parametrize(
    ("case", "log", "arriving", "expected"),
    [
        ("there from the start", [1, 1_700_000_000_000], [], 1),
        ("none at all", [1, 2], [], 2),
        ("comes after the first look", [1], [1_700_000_000_005], 1),
        ("comes after the end was read", [1], [2, 1_700_000_000_005], 2),
        ("comes after the second look", [1], [2, 3, 1_700_000_000_005], 2),
    ],
)
def test_no_record_is_passed_over_that_comes_while_we_look(
    monkeypatch: pytest.MonkeyPatch, case: str, log: list[int], arriving: list[int], expected: int
) -> None:
    fake = Growing(log, arriving=arriving)
    monkeypatch.setattr(HandleFactory, "consumer", fake.consumer)
    admin: Any = fake
    reader = OffsetReader(HandleFactory("us", {}), lambda: admin, "read_uncommitted")
    reading = reader.read_at([HERE], SINCE, timeout=1.0)
    assert (reading.offsets, reading.errors) == ({HERE: expected}, {}), case
    first = next((k for k, at in enumerate(fake.log) if at >= SINCE * 1000), len(fake.log))
    assert expected <= first
