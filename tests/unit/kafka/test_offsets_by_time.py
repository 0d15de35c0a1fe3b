from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import TopicPartition as RawPartition

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.partition_offsets import OffsetReader

PARTITION = TopicPartition("orders", 0)
SINCE = 1_700_000_000.0


class GrowingPartition:
    """A partition that gets one record, given by its time in ms, after each request."""

    def __init__(self, log: list[int], *, arriving: list[int]) -> None:
        self.log = log
        self.arriving = arriving
        self.asked: list[int] = []

    def consumer(self, *_settings: object, **_options: object) -> GrowingPartition:
        return self

    def offsets_for_times(self, asked: list[Any], timeout: float) -> Any:
        assert timeout > 0
        [one] = asked
        self.asked.append(one.offset)
        answer = len(self.log) if one.offset == -1 else self._at(one.offset)
        self.log += [self.arriving.pop(0)] if self.arriving else []
        return [RawPartition("orders", 0, answer)]

    def _at(self, moment: int) -> int:
        return next((k for k, at in enumerate(self.log) if at >= moment), -1)

    def poll(self, _timeout: float) -> int:
        return 0


@pytest.mark.parametrize(
    ("case", "log", "arriving", "expected"),
    [
        ("present at the start", [1, 1_700_000_000_000], [], 1),
        ("no such record", [1, 2], [], 2),
        ("appended after the first lookup", [1], [1_700_000_000_005], 1),
        ("appended after the end offset was read", [1], [2, 1_700_000_000_005], 2),
        ("appended after the second lookup", [1], [2, 3, 1_700_000_000_005], 2),
    ],
)
def test_offsets_at_time_do_not_skip_records_appended_meanwhile(
    monkeypatch: pytest.MonkeyPatch, case: str, log: list[int], arriving: list[int], expected: int
) -> None:
    fake = GrowingPartition(log, arriving=arriving)
    monkeypatch.setattr(HandleFactory, "consumer", fake.consumer)
    admin: Any = fake
    reader = OffsetReader(HandleFactory("us", {}), lambda: admin, "read_uncommitted")
    reading = reader.read_at([PARTITION], SINCE, timeout=1.0)
    assert (reading.offsets, reading.errors) == ({PARTITION: expected}, {}), case
    first = next((k for k, at in enumerate(fake.log) if at >= SINCE * 1000), len(fake.log))
    assert expected <= first
