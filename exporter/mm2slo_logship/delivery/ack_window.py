"""Batches in the order of sending, from accepted by HEC to indexed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_logship.hec.answer_codes import Action

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_logship.hec.answer import Answer
    from mm2slo_logship.hec.batch import Batch
    from mm2slo_logship.hec.hec_client import HecClient

_MOST_PENDING: Final = 8
_POLL_INTERVAL: Final = 1.0
_EXPIRY: Final = 300.0
"""After this time Splunk advises to send again; it forgets ids after 10 minutes."""


@dataclass(slots=True)
class _Entry:
    batch: Batch
    client: HecClient | None = None
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

    def add(self, batch: Batch, client: HecClient | None, ack_id: int | None, now: float) -> None:
        """*batch* was accepted; with *ack_id*, it will be indexed later."""
        if self.is_disabled:
            ack_id = None
        if batch.items:
            self._entries.append(_Entry(batch, client, ack_id, now))

    def poll(self, now: float) -> Answer | None:
        """Ask which batches are indexed; the answer if the token has no acknowledgement."""
        if not len(self) or now - self._polled_at < _POLL_INTERVAL:
            return None
        self._polled_at = now
        for client in {each.client for each in self._entries if each.ack_id is not None}:
            if client is None:
                continue
            pending = [each for each in self._entries if each.client is client]
            ids = [each.ack_id for each in pending if each.ack_id is not None]
            done, answer = client.acknowledged(ids)
            if answer.action is Action.NO_ACK:
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

    def take_done(self) -> Iterator[Batch]:
        while self._entries and self._entries[0].ack_id is None:
            yield self._entries.popleft().batch

    def take_expired(self, now: float) -> list[Batch]:
        """All batches from the first that Splunk did not index in time; to be sent again."""
        if not any(e.ack_id is not None and now - e.sent_at >= _EXPIRY for e in self._entries):
            return []
        batches = [entry.batch for entry in self._entries]
        self._entries.clear()
        return batches
