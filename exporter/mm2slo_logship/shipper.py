"""All lanes of a process: one thread per index, and what they share."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from mm2slo_logship.checkpoints import Checkpoints
from mm2slo_logship.delivery.dead_letters import DeadLetters
from mm2slo_logship.delivery.endpoints import Endpoints
from mm2slo_logship.delivery.lane import Lane, Resources
from mm2slo_logship.hec.hec_client import HecClient
from mm2slo_logship.hec.token_file import Token
from mm2slo_logship.state_folder import locked_state

if TYPE_CHECKING:
    from mm2slo_logship.ship_metrics import ShipMetrics
    from mm2slo_logship.ship_settings import ShipSettings

logger = logging.getLogger(__name__)

_STOP_TIMEOUT: Final = 10.0
"""A request in flight may finish in this time; it is repeated after the next start otherwise."""


class Shipper:
    """Ships until `stop`; raises UserError at the start for what a user can fix."""

    def __init__(self, settings: ShipSettings, metrics: ShipMetrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._stop = threading.Event()
        self._failure: Exception | None = None
        self._redacted: dict[str, int] = {}
        self._lanes: list[Lane] = []
        self._threads: list[threading.Thread] = []
        self._stack = ExitStack()

    def start(self) -> None:
        """Start a thread per index."""
        settings = self._settings
        token = Token(settings.token_file)
        if advice := token.advice():
            logger.warning("%s", advice)
        folder = self._stack.enter_context(locked_state(settings.state_dir))
        resources = Resources(
            settings=settings,
            checkpoints=Checkpoints(folder),
            token=token,
            dead_letters=DeadLetters(folder / "dead-letters", settings.max_dead_letter_bytes),
            metrics=self._metrics,
            stop=self._stop,
        )
        for index in dict.fromkeys(source.index for source in settings.sources):
            sources = [source for source in settings.sources if source.index == index]
            clients = [
                HecClient(url, token, settings.connection, settings.version)
                for url in settings.endpoints
            ]
            lane = Lane(sources, Endpoints(clients, time.monotonic), resources)
            self._lanes.append(lane)
            thread = threading.Thread(
                target=self._run, args=(lane,), name=f"lane-{index or 'default'}", daemon=True
            )
            self._threads.append(thread)
        lanes, metrics = self._lanes, self._metrics
        metrics.unsent_bytes.set_function(lambda: sum(each.unsent_bytes for each in lanes))
        metrics.send_lag.set_function(lambda: max(each.lag for each in lanes))
        metrics.files.set_function(lambda: sum(len(each.watch.files) for each in lanes))
        metrics.unreadable_files.set_function(lambda: sum(each.watch.unreadable for each in lanes))
        for thread in self._threads:
            thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether the shipper goes on after up to *seconds*. Raises what a lane failed with."""
        self._count_redactions()
        is_stopping = self._stop.wait(seconds)
        if self._failure is not None:
            raise self._failure
        return not is_stopping

    def request_stop(self) -> None:
        """Stop reading; safe in a signal handler."""
        self._stop.set()

    def stop(self) -> None:
        """Let requests in flight finish, and write the checkpoints."""
        self._stop.set()
        until = time.monotonic() + _STOP_TIMEOUT
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))
            if thread.is_alive():
                logger.warning("a request is still open; its events will be sent again")
        self._count_redactions()
        self._stack.close()

    def _run(self, lane: Lane) -> None:
        try:
            lane.run()
        except Exception as error:
            logger.exception("shipping to index %s failed", lane.index)
            self._failure = error
            self._stop.set()

    def _count_redactions(self) -> None:
        for pattern, count in tuple(self._settings.redactions.items()):
            self._metrics.redactions.labels(pattern).inc(count - self._redacted.get(pattern, 0))
            self._redacted[pattern] = count
