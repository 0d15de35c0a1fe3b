"""Sends batches until Splunk has accepted each event, or it is a dead letter.

`Delivery` takes endpoints in turn, and keeps sent batches in an `AckWindow` until they are indexed.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from mm2slo_core.catalogue import service_metrics as catalogue
from mm2slo_core.catalogue.metric import Metric
from mm2slo_logship.hec_client import HecClient, HecTokenFile
from mm2slo_logship.hec_protocol import AnswerAction, HecAnswer
from mm2slo_logship.ship_state import DeadLetters
from mm2slo_logship.tailed_file import EventBatch

logger = logging.getLogger(__name__)
T = TypeVar("T")
_PROBE_INTERVAL: Final = 60.0
_TOKEN_INTERVAL: Final = 1.0
_DISK_INTERVAL: Final = 1.0
_SLOW_DOWN: Final = 1.0
_FOLLOW_INTERVAL: Final = 1.0
_PARTIAL: Final = frozenset({6, 12, 13, 15})
"""Codes with which Splunk names the invalid event and indexes those before it."""

_SMALL: Final = 256 * 1024
"""Splunk Cloud rejects larger bodies as invalid at event 0, which may be valid."""


class Delivery:
    """Delivers the batches of one *index*, in order; *accept* moves the checkpoints.

    *wait* waits seconds while files are followed, and raises Stopping when the process shall end;
    *follow* follows them once.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        token: HecTokenFile,
        dead_letters: DeadLetters,
        metrics: ShipMetrics,
        *,
        index: str,
        has_ack: bool,
        accept: Callable[[EventBatch], None],
        wait: Callable[[float], None],
        follow: Callable[[], None],
    ) -> None:
        self._endpoints = endpoints
        self._token = token
        self._dead_letters = dead_letters
        self._metrics = metrics
        self._index = index
        self._has_ack = has_ack
        self._accept = accept
        self._wait = wait
        self._follow = follow
        self._state = ""
        self.window = AckWindow()

    def deliver(self, batch: EventBatch) -> None:
        """Send *batch*, and those that Splunk accepted but did not index in time."""
        pending = [batch]
        while pending:
            part = pending.pop()
            client = self._endpoints.next()
            token = self._token.reveal()
            answer = self._send(client, part)
            self._report(answer)
            if answer.action in {AnswerAction.ACCEPTED, AnswerAction.SLOW_DOWN}:
                self._endpoints.succeeded(client)
                self._add(part, client, answer)
            elif answer.action is AnswerAction.SPLIT:
                pending += self._split(part, client, answer)
            elif answer.action is AnswerAction.TOO_LARGE:
                pending += self._halve(part, answer)
            else:
                pending.append(part)
                self._retry_later(client, answer, token)
            self.settle()
            if answer.action is AnswerAction.SLOW_DOWN:
                self._wait(_SLOW_DOWN)
            while self.window.is_full:
                self._wait(0.2)
                self.settle()

    def settle(self) -> None:
        """Move the checkpoints over what is indexed; send again what was not in time."""
        now = time.monotonic()
        answer = self._answer(partial(self.window.poll, now)) if len(self.window) else None
        if answer is not None:
            logger.error("acknowledgement is off: %s; set logship.acknowledge: false", answer)
        for batch in self.window.take_done():
            self._accept(batch)
        expired = self.window.take_expired(now)
        self._metrics.pending_acks.set(len(self.window))
        for batch in expired:
            logger.warning("%s events were not acknowledged; sending again", len(batch.items))
            self._metrics.possible_duplicates.inc(len(batch.items))
            self.deliver(batch)

    def _send(self, client: HecClient, part: EventBatch) -> HecAnswer:
        started = time.monotonic()
        answer = self._answer(partial(client.send, part.body))
        self._metrics.request_duration.observe(time.monotonic() - started)
        self._metrics.requests.labels(answer.status, answer.code_label).inc()
        if answer.is_ambiguous:
            self._metrics.possible_duplicates.inc(len(part.items))
        return answer

    def _answer(self, request: Callable[[], T]) -> T:
        """What *request* returns, which never raises; files are followed as long as it is open."""
        found: list[T] = []
        thread = threading.Thread(target=lambda: found.append(request()), daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(_FOLLOW_INTERVAL)
            self._follow()
        return found[0]

    def _add(self, part: EventBatch, client: HecClient, answer: HecAnswer) -> None:
        """Splunk accepted *part*."""
        self._metrics.events_sent.inc(len(part.items))
        self._metrics.last_success.set(time.time())
        # The answer to an invalid event may lack the id for those before it.
        has_no_ack = answer.ack_id is None and answer.action is not AnswerAction.SPLIT
        if self._has_ack and has_no_ack and not self.window.is_disabled:
            logger.error("the token has no acknowledgement; set logship.acknowledge: false")
            self.window.disable()
        ack_id = answer.ack_id if self._has_ack else None
        self.window.add(part, client, ack_id, time.monotonic())

    def _split(self, part: EventBatch, client: HecClient, answer: HecAnswer) -> list[EventBatch]:
        """Splunk keeps the events before an invalid one, and drops it and all after it."""
        number = answer.invalid_event
        if len(part.items) == 1:
            number = 0
        elif (
            answer.code not in _PARTIAL
            or number is None
            or not 0 <= number < len(part.items)
            or (answer.code == 6 and number == 0 and len(part.body) > _SMALL)
        ):
            return self._halve(part, answer)
        head, rest = part.split(number)
        invalid, tail = rest.split(1)
        if head.items:
            self._add(head, client, answer)
        self._bury(invalid, answer)
        return [tail] if tail.items else []

    def _halve(self, part: EventBatch, answer: HecAnswer) -> list[EventBatch]:
        if len(part.items) == 1:
            self._bury(part, answer)
            return []
        first, second = part.split(len(part.items) // 2)
        return [second, first]  # the last is sent next: events stay in order

    def _bury(self, invalid: EventBatch, answer: HecAnswer) -> None:
        self._metrics.dead_letters.labels(answer.code_label).inc()
        for item in invalid.items:
            self.until_written(partial(self._add_dead_letter, item.body, answer))
        self.window.add(invalid, None, None, time.monotonic())

    def _add_dead_letter(self, envelope: bytes, answer: HecAnswer) -> None:
        dropped = self._dead_letters.add(envelope, str(answer))
        self._metrics.dead_letters_dropped.inc(dropped)
        if dropped:
            logger.error("%s dead letters deleted: max_dead_letter_bytes is reached", dropped)

    def until_written(self, write: Callable[[], None]) -> None:
        """Repeat *write* while the disk is full: sending more would duplicate more."""
        is_reported = False
        while True:
            try:
                write()
            except OSError as error:
                if not is_reported:
                    logger.error("cannot write %s; sending stops until it works", error)
                is_reported = True
                self._wait(_DISK_INTERVAL)
            else:
                return

    def _retry_later(self, client: HecClient, answer: HecAnswer, token: str) -> None:
        delay = self._endpoints.failed(client, answer)
        if answer.action is not AnswerAction.HOLD:
            self._wait(delay)
        elif not self._endpoints.is_one_usable:
            self._hold(answer, token)

    def _hold(self, answer: HecAnswer, token: str) -> None:
        """Send nothing for a minute, or until *token* is replaced, also by another lane."""
        held = self._metrics.hold.labels(self._index, answer.code_label)
        held.set(1)
        until = time.monotonic() + _PROBE_INTERVAL
        while time.monotonic() < until and self._token.read_again() == token:
            self._wait(_TOKEN_INTERVAL)
        held.set(0)

    def _report(self, answer: HecAnswer) -> None:
        """Log each change of state once."""
        accepted = answer.action in {AnswerAction.ACCEPTED, AnswerAction.SLOW_DOWN}
        state = "" if accepted else f"{answer.action} {answer}"
        if state == self._state:
            return
        self._state = state
        if accepted:
            logger.info("events of index %s are accepted again", self._index)
        elif answer.action is AnswerAction.HOLD:
            logger.error("holding events of index %s: %s", self._index, answer)
        else:
            logger.warning("events of index %s: %s (%s)", self._index, answer, answer.action)


_MOST_PENDING: Final = 8
_POLL_INTERVAL: Final = 1.0

_EXPIRY: Final = 300.0
"""After this time Splunk advises to send again; it forgets ids after 10 minutes."""


@dataclass(slots=True)
class _Entry:
    batch: EventBatch
    client: HecClient | None = None
    channel: str = ""
    ack_id: int | None = None  # None: done
    sent_at: float = 0.0


class AckWindow:
    """Batches leave at the front, so that checkpoints never pass one that is not indexed."""

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque()
        self._polled_at = 0.0
        self.is_disabled = False

    def __len__(self) -> int:
        return sum(entry.ack_id is not None for entry in self._entries)

    @property
    def is_full(self) -> bool:
        return len(self) >= _MOST_PENDING

    def add(
        self, batch: EventBatch, client: HecClient | None, ack_id: int | None, now: float
    ) -> None:
        """*batch* was accepted; with *ack_id*, it will be indexed later."""
        if self.is_disabled:
            ack_id = None
        if batch.items:
            channel = client.channel if client is not None else ""
            self._entries.append(_Entry(batch, client, channel, ack_id, now))

    def poll(self, now: float) -> HecAnswer | None:
        """Ask which batches are indexed; the answer if the token has no acknowledgement."""
        if not len(self) or now - self._polled_at < _POLL_INTERVAL:
            return None
        self._polled_at = now
        waiting = [each for each in self._entries if each.ack_id is not None]
        for client, channel in {(each.client, each.channel) for each in waiting}:
            if client is None:
                continue
            # Only the endpoint that took a batch knows its id.
            pending = [each for each in waiting if each.channel == channel]
            ids = [each.ack_id for each in pending if each.ack_id is not None]
            done, answer = client.acknowledged(ids, channel)
            if answer.action is AnswerAction.NO_ACK:
                self.disable()
                return answer
            for entry in pending:
                if entry.ack_id in done:
                    entry.ack_id = None
        return None

    def disable(self) -> None:
        """The token has no acknowledgement: what was accepted is done."""
        self.is_disabled = True
        for entry in self._entries:
            entry.ack_id = None

    def take_done(self) -> Iterator[EventBatch]:
        while self._entries and self._entries[0].ack_id is None:
            yield self._entries.popleft().batch

    def take_expired(self, now: float) -> list[EventBatch]:
        """All batches from the first that Splunk did not index in time; to be sent again."""
        if not any(e.ack_id is not None and now - e.sent_at >= _EXPIRY for e in self._entries):
            return []
        # Those behind it as well, even indexed ones: events are sent in order, and a checkpoint
        # never passes a batch that is not indexed.
        batches = [entry.batch for entry in self._entries]
        self._entries.clear()
        return batches


_LEFT_OUT: Final = 60.0
_LONGEST_DELAY: Final = 60.0


class Endpoints:
    """Which endpoint gets the next request, and when."""

    def __init__(self, clients: Sequence[HecClient]) -> None:
        self._clients = list(clients)
        self._usable_at = [0.0 for _ in clients]
        self._turn = 0
        self._failures = 0

    def next(self) -> HecClient:
        """The next usable endpoint, or the one that is usable first."""
        now = time.monotonic()
        order = [(self._turn + each) % len(self._clients) for each in range(len(self._clients))]
        chosen = min(order, key=lambda each: max(self._usable_at[each] - now, 0.0))
        self._turn = chosen + 1
        return self._clients[chosen]

    @property
    def is_one_usable(self) -> bool:
        now = time.monotonic()
        return any(usable_at <= now for usable_at in self._usable_at)

    def succeeded(self, client: HecClient) -> None:
        self._failures = 0
        self._usable_at[self._clients.index(client)] = 0.0

    def failed(self, client: HecClient, answer: HecAnswer) -> float:
        """Seconds until the next request: with full jitter, up to 1 s at first, 60 s at last.

        A kept connection may have been closed by Splunk, so the first loss of one is retried at
        once; and another endpoint need not wait.
        """
        left_out = answer.retry_after or _LEFT_OUT
        self._usable_at[self._clients.index(client)] = time.monotonic() + left_out
        self._failures += 1
        if self.is_one_usable:
            return 0.0
        if answer.is_ambiguous and not answer.status and self._failures == 1:
            return 0.0
        # Full jitter, as in the AWS Architecture Blog, "Exponential Backoff And Jitter": all hosts
        # see an outage end at once, and a fixed delay would bring them back at once.
        delay = random.uniform(0.0, min(_LONGEST_DELAY, 2.0 ** (self._failures - 1)))
        # Retry-After may be 0, or a date that is past by the clock of this host.
        return max(delay, answer.retry_after or 0.0)


class ShipMetrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.events_read = self._counter(catalogue.LOGSHIP_EVENTS_READ_TOTAL)
        self.events_sent = self._counter(catalogue.LOGSHIP_EVENTS_SENT_TOTAL)
        self.dead_letters = self._counter(catalogue.LOGSHIP_DEAD_LETTERS_TOTAL)
        self.dead_letters_dropped = self._counter(catalogue.LOGSHIP_DEAD_LETTERS_DROPPED_TOTAL)
        self.lost_files = self._counter(catalogue.LOGSHIP_LOST_FILES_TOTAL)
        self.lost_bytes = self._counter(catalogue.LOGSHIP_LOST_BYTES_TOTAL)
        self.redactions = self._counter(catalogue.LOGSHIP_REDACTIONS_TOTAL)
        self.requests = self._counter(catalogue.LOGSHIP_REQUESTS_TOTAL)
        duration = catalogue.LOGSHIP_REQUEST_DURATION_SECONDS
        self.request_duration = Histogram(
            duration.name, duration.help, buckets=duration.buckets, registry=self.registry
        )
        self.possible_duplicates = self._counter(catalogue.LOGSHIP_POSSIBLE_DUPLICATES_TOTAL)
        self.unsent_bytes = self._gauge(catalogue.LOGSHIP_UNSENT_BYTES)
        self.send_lag = self._gauge(catalogue.LOGSHIP_SEND_LAG_SECONDS)
        self.pending_acks = self._gauge(catalogue.LOGSHIP_PENDING_ACKS)
        self.hold = self._gauge(catalogue.LOGSHIP_HOLD)
        self.files = self._gauge(catalogue.LOGSHIP_FILES)
        self.unreadable_files = self._gauge(catalogue.LOGSHIP_UNREADABLE_FILES)
        self.last_success = self._gauge(catalogue.LOGSHIP_LAST_SUCCESS_TIMESTAMP_SECONDS)

    def _counter(self, metric: Metric) -> Counter:
        return Counter(metric.name, metric.help, metric.labels, registry=self.registry)

    def _gauge(self, metric: Metric) -> Gauge:
        return Gauge(metric.name, metric.help, metric.labels, registry=self.registry)
