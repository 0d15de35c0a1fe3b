"""Takes the messages that a consumer has received."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message


def take_available(consumer: Consumer, max_messages: int, timeout: float) -> list[Message]:
    """Wait up to *timeout* seconds for one message; return it and others already received.

    `Consumer.consume` alone waits for its whole timeout unless *max_messages* are available,
    which would add that time to each arrival.
    """
    first = consumer.poll(timeout)
    if first is None:
        return []
    if max_messages == 1:
        return [first]
    return [first, *consumer.consume(max_messages - 1, timeout=0)]
