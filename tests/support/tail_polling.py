"""Polls a topic tail until a condition holds."""

import time
from collections.abc import Callable

from mm2slo_kafka.tailed_topic import TailBatch
from mm2slo_kafka.topic_tail import TopicTail


def poll_until(tail: TopicTail, reached: Callable[[], bool]) -> list[TailBatch]:
    """The batches read until *reached*; fails after 30 s."""
    batches: list[TailBatch] = []
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline, f"not reached; {tail.state}, {tail.problem}"
        batches.append(tail.poll(1000, 0.1))
    return batches
