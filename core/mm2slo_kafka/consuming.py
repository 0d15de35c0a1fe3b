"""Taking messages off a consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message


def take_available(consumer: Consumer, most: int, timeout: float) -> list[Message]:
    """Wait up to *timeout* seconds for one message, and take what else has arrived with it.

    `Consumer.consume` alone waits out its timeout unless *most* messages are there, which would
    add that time to each arrival.
    """
    first = consumer.poll(timeout)
    if first is None:
        return []
    if most == 1:
        return [first]
    return [first, *consumer.consume(most - 1, timeout=0)]
