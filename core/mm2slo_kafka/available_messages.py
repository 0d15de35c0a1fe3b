"""Takes the messages that a consumer has received."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message


def take_available(consumer: Consumer, max_messages: int, timeout: float) -> list[Message]:
    """Wait up to *timeout* seconds for one message; return it and others already received.

    `Consumer.consume` alone waits for its whole timeout unless *max_messages* are available,
    which would add that time to each arrival. The consumer must not be a member of its group:
    permissions on it do not matter, so that reports of missing ones are left out.
    """
    deadline = time.monotonic() + timeout
    while True:
        first = consumer.poll(max(deadline - time.monotonic(), 0.0))
        if first is None:
            return []
        found = [first]
        if max_messages > 1:
            found += consumer.consume(max_messages - 1, timeout=0)
        if relevant := [each for each in found if not _is_about_group(each)]:
            return relevant


def _is_about_group(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
