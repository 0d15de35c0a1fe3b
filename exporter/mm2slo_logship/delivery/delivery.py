"""Sends batches until each event is accepted by Splunk, or is a dead letter."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from mm2slo_logship.delivery.ack_window import AckWindow
from mm2slo_logship.hec.answer_codes import Action

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_logship.delivery.dead_letters import DeadLetters
    from mm2slo_logship.delivery.endpoints import Endpoints
    from mm2slo_logship.hec.answer import Answer
    from mm2slo_logship.hec.batch import Batch
    from mm2slo_logship.hec.hec_client import HecClient
    from mm2slo_logship.hec.token_file import Token
    from mm2slo_logship.ship_metrics import ShipMetrics

logger = logging.getLogger(__name__)

_PROBE_INTERVAL: Final = 60.0
_TOKEN_INTERVAL: Final = 1.0
_DISK_INTERVAL: Final = 1.0
_SLOW_DOWN: Final = 1.0
_PARTIAL: Final = frozenset({6, 12, 13, 15})
_SMALL: Final = 256 * 1024
"""Splunk Cloud rejects larger bodies as invalid at event 0, which may be valid."""


class Wait(Protocol):
    """Waits while files are followed. Raises Stopping when the process shall end."""

    def __call__(self, seconds: float) -> None: ...


class Delivery:
    """Delivers the batches of one *index*, in order; *accept* moves the checkpoints."""

    def __init__(
        self,
        endpoints: Endpoints,
        token: Token,
        dead_letters: DeadLetters,
        metrics: ShipMetrics,
        *,
        index: str,
        has_ack: bool,
        accept: Callable[[Batch], None],
        wait: Wait,
        clock: Callable[[], float],
    ) -> None:
        self._endpoints = endpoints
        self._token = token
        self._dead_letters = dead_letters
        self._metrics = metrics
        self._index = index
        self._has_ack = has_ack
        self._accept = accept
        self._wait = wait
        self._clock = clock
        self._state = ""
        self.window = AckWindow()

    def deliver(self, batch: Batch) -> None:
        """Send *batch*, and those that Splunk accepted but did not index in time."""
        pending = [batch]
        while pending:
            part = pending.pop()
            client = self._endpoints.next()
            answer = self._send(client, part)
            self._report(answer)
            if answer.action in {Action.ACCEPTED, Action.SLOW_DOWN}:
                self._endpoints.succeeded(client)
                self._add(part, client, answer)
            elif answer.action is Action.SPLIT:
                pending += self._split(part, client, answer)
            elif answer.action is Action.TOO_LARGE:
                pending += self._halve(part, answer)
            else:
                pending.append(part)
                self._retry_later(client, answer)
            self.settle()
            if answer.action is Action.SLOW_DOWN:
                self._wait(_SLOW_DOWN)
            while self.window.is_full:
                self._wait(0.2)
                self.settle()

    def settle(self) -> None:
        """Move the checkpoints over what is indexed; send again what was not in time."""
        now = self._clock()
        answer = self.window.poll(now)
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

    def _send(self, client: HecClient, part: Batch) -> Answer:
        started = self._clock()
        answer = client.send(part.body)
        self._metrics.request_duration.observe(self._clock() - started)
        self._metrics.requests.labels(answer.status, answer.code_label).inc()
        if answer.is_ambiguous:
            self._metrics.possible_duplicates.inc(len(part.items))
        return answer

    def _add(self, part: Batch, client: HecClient, answer: Answer) -> None:
        """Splunk accepted *part*."""
        self._metrics.events_sent.inc(len(part.items))
        self._metrics.last_success.set(time.time())
        # The answer to an invalid event may lack the id for those before it.
        has_no_ack = answer.ack_id is None and answer.action is not Action.SPLIT
        if self._has_ack and has_no_ack and not self.window.is_disabled:
            logger.error("the token has no acknowledgement; set logship.acknowledge: false")
            self.window.disable()
        ack_id = answer.ack_id if self._has_ack else None
        self.window.add(part, client, ack_id, self._clock())

    def _split(self, part: Batch, client: HecClient, answer: Answer) -> list[Batch]:
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

    def _halve(self, part: Batch, answer: Answer) -> list[Batch]:
        if len(part.items) == 1:
            self._bury(part, answer)
            return []
        first, second = part.split(len(part.items) // 2)
        return [second, first]  # the last is sent next

    def _bury(self, invalid: Batch, answer: Answer) -> None:
        self._metrics.dead_letters.labels(answer.code_label).inc()
        for item in invalid.items:
            self.until_written(partial(self._add_dead_letter, item.body, answer))
        self.window.add(invalid, None, None, self._clock())

    def _add_dead_letter(self, envelope: bytes, answer: Answer) -> None:
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

    def _retry_later(self, client: HecClient, answer: Answer) -> None:
        delay = self._endpoints.failed(client, answer)
        if answer.action is not Action.HOLD:
            self._wait(delay)
        elif not self._endpoints.is_one_usable:
            self._hold(answer)

    def _hold(self, answer: Answer) -> None:
        """Send nothing for a minute, or until the token is another one."""
        held = self._metrics.hold.labels(self._index, answer.code_label)
        held.set(1)
        until = self._clock() + _PROBE_INTERVAL
        while self._clock() < until and not self._token.read_again():
            self._wait(_TOKEN_INTERVAL)
        held.set(0)

    def _report(self, answer: Answer) -> None:
        """Log each change of state once."""
        accepted = answer.action in {Action.ACCEPTED, Action.SLOW_DOWN}
        state = "" if accepted else f"{answer.action} {answer}"
        if state == self._state:
            return
        self._state = state
        if accepted:
            logger.info("events of index %s are accepted again", self._index)
        elif answer.action is Action.HOLD:
            logger.error("holding events of index %s: %s", self._index, answer)
        else:
            logger.warning("events of index %s: %s (%s)", self._index, answer, answer.action)
