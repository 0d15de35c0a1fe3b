"""The endpoints of Splunk, taken in turn; one that fails is left out for a while."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mm2slo_logship.hec.answer import Answer
    from mm2slo_logship.hec.hec_client import HecClient

_LEFT_OUT: Final = 60.0
_LONGEST_DELAY: Final = 60.0


class Endpoints:
    """Which endpoint gets the next request, and when."""

    def __init__(self, clients: Sequence[HecClient], clock: Callable[[], float]) -> None:
        self._clients = list(clients)
        self._clock = clock
        self._usable_at = [0.0 for _ in clients]
        self._turn = 0
        self._failures = 0

    def next(self) -> HecClient:
        """The next usable endpoint, or the one that is usable first."""
        now = self._clock()
        order = [(self._turn + each) % len(self._clients) for each in range(len(self._clients))]
        chosen = min(order, key=lambda each: max(self._usable_at[each] - now, 0.0))
        self._turn = chosen + 1
        return self._clients[chosen]

    @property
    def is_one_usable(self) -> bool:
        now = self._clock()
        return any(usable_at <= now for usable_at in self._usable_at)

    def succeeded(self, client: HecClient) -> None:
        self._failures = 0
        self._usable_at[self._clients.index(client)] = 0.0

    def failed(self, client: HecClient, answer: Answer) -> float:
        """Seconds until the next request: with full jitter, up to 1 s at first, 60 s at last.

        A kept connection may have been closed by Splunk, so the first loss of one is retried at
        once; and another endpoint need not wait.
        """
        left_out = _LEFT_OUT if answer.retry_after is None else answer.retry_after
        self._usable_at[self._clients.index(client)] = self._clock() + left_out
        self._failures += 1
        if self.is_one_usable:
            return 0.0
        if answer.retry_after is not None:
            return answer.retry_after
        if answer.is_ambiguous and not answer.status and self._failures == 1:
            return 0.0
        return random.uniform(0.0, min(_LONGEST_DELAY, 2.0 ** (self._failures - 1)))
