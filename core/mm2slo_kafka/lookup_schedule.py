"""When topics are looked up; the lookups run in the background, one at a time."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from mm2slo_kafka.background_call import call_in_background
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_kafka.topic_lookup import TopicLookup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from mm2slo_kafka.tailed_topic import TailedTopic, TopicDescription
    from mm2slo_kafka.topic_lookup import Answers


_EARLY_SECONDS = 2.5
"""Topics that are due this soon are looked up with those that are due, in the same requests."""


class LookupSchedule:
    """The topics of a group and when each is due. Not thread-safe."""

    def __init__(self, look_up: Callable[[Sequence[TopicLookup]], Answers]) -> None:
        self._look_up = look_up
        self._due: dict[str, float] = {}
        self._answer: Future[Answers] | None = None
        self._lookups: Sequence[TopicLookup] = ()

    @property
    def is_running(self) -> bool:
        return self._answer is not None

    def set_due(self, topic: str, seconds: float = 0.0) -> None:
        """Look up *topic* in so many seconds."""
        self._due[topic] = time.monotonic() + seconds

    def drop(self, topic: str) -> None:
        del self._due[topic]

    def wait(self, deadline: float) -> float:
        """Seconds until *deadline*, or until a topic is to be looked up."""
        due = deadline if self.is_running else min(self._due.values(), default=deadline)
        return max(min(deadline, due) - time.monotonic(), 0.0)

    def serve(
        self, topics: Mapping[str, TailedTopic], timeout: float
    ) -> Sequence[tuple[TopicLookup, TopicDescription | KafkaOperationError]]:
        """Look up what is due; answers that arrive within *timeout* seconds."""
        if self._answer is None:
            now = time.monotonic()
            if not any(at <= now for at in self._due.values()):
                time.sleep(timeout)
                return ()
            due = (topic for topic, at in self._due.items() if at <= now + _EARLY_SECONDS)
            self._lookups = tuple(TopicLookup.of(topics[topic]) for topic in due)
            self._answer = call_in_background(partial(self._look_up, self._lookups), "lookup")
        try:
            answers = self._answer.result(timeout)
        except TimeoutError:
            return ()
        except KafkaOperationError as problem:
            answers = {lookup.topic: problem for lookup in self._lookups}
        self._answer = None
        return [(lookup, answers[lookup.topic]) for lookup in self._lookups]

    def when_idle(self, call: Callable[[], None]) -> None:
        """Call *call* after a lookup in progress."""
        if self._answer is None:
            call()
        else:
            self._answer.add_done_callback(lambda _answers: call())
