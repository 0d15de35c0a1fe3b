"""All lanes of a process: one thread per index ships the files whose events go to it."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mm2slo_core.config.logship_config import LogshipConfig
from mm2slo_logship.event_delivery import Delivery, Endpoints, ShipMetrics
from mm2slo_logship.file_watch import FileWatch
from mm2slo_logship.hec_client import Connection, HecClient, HecTokenFile
from mm2slo_logship.hec_protocol import envelope, envelope_start
from mm2slo_logship.log_files import Source, path_text
from mm2slo_logship.ship_state import Checkpoints, DeadLetters, locked_state
from mm2slo_logship.tailed_file import BatchBuilder, EventBatch, Item, TailedFile

logger = logging.getLogger(__name__)

_POLL_INTERVAL: Final = 0.2
_REFRESH_INTERVAL: Final = 1.0
_ACK_GRACE: Final = 5.0
_SOURCETYPE: Final = "repl:logship:json"
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
        section = settings.section
        token = HecTokenFile(Path(section.token_file))
        if advice := token.advice():
            logger.warning("%s", advice)
        folder = self._stack.enter_context(locked_state(Path(section.state_dir)))
        resources = Resources(
            settings=settings,
            checkpoints=Checkpoints(folder),
            token=token,
            dead_letters=DeadLetters(folder / "dead-letters", section.max_dead_letter_bytes),
            metrics=self._metrics,
            stop=self._stop,
        )
        for index in dict.fromkeys(source.index for source in settings.sources):
            sources = [source for source in settings.sources if source.index == index]
            clients = [
                HecClient(url, token, settings.connection, settings.version)
                for url in section.endpoints
            ]
            lane = Lane(sources, Endpoints(clients), resources)
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


class Stopping(Exception):  # noqa: N818 - a request, not an error
    """The process shall end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What the lanes of a process share."""

    settings: ShipSettings
    checkpoints: Checkpoints
    token: HecTokenFile
    dead_letters: DeadLetters
    metrics: ShipMetrics
    stop: threading.Event


class Lane:
    """Reads, sends and checkpoints the *sources* of one index."""

    def __init__(
        self, sources: Sequence[Source], endpoints: Endpoints, resources: Resources
    ) -> None:
        section = resources.settings.section
        self.index = sources[0].index
        self.watch = FileWatch(
            resources.settings.sources,
            resources.checkpoints,
            self._report_loss,
            index=self.index,
            max_deleted_bytes=section.max_deleted_bytes,
        )
        self._resources = resources
        self._batch = BatchBuilder(section.linger)
        self._refreshed_at = 0.0
        self._turn = 0
        self._read_at: deque[float] = deque()  # of each event that is not accepted, in order
        self._loss_start = envelope_start(
            host=sources[0].host, source="mm2slo logship", sourcetype=_SOURCETYPE, index=self.index
        )
        self.delivery = Delivery(
            endpoints, resources.token, resources.dead_letters, resources.metrics,
            index=self.index or "default", has_ack=section.acknowledge,
            accept=self._accept, wait=self._wait, follow=self._follow,
        )  # fmt: skip

    def run(self) -> None:
        """Ship until the process shall end; what is not accepted is sent after the next start."""
        try:
            while True:
                self._wait(0.0)
                if not self._ship():
                    self.delivery.settle()
                    self._wait(_POLL_INTERVAL)
        except Stopping:
            self._finish()
        finally:
            self.watch.close()

    @property
    def unsent_bytes(self) -> int:
        return sum(file.unsent for file in self.watch.files)

    @property
    def lag(self) -> float:
        """Seconds since the oldest event was read that is not accepted."""
        now = time.monotonic()
        return now - next(iter(self._read_at.copy()), now)  # the lane goes on meanwhile

    def _report_loss(self, path: Path, reason: str, size: int) -> None:
        """Count a loss, and say so in Splunk."""
        if reason == "deleted" and not size:
            return
        level = "ERROR" if size else "INFO"
        text = f"{size} bytes are lost" if size else "no line that was read is lost"
        self._resources.metrics.lost_files.labels(reason).inc()
        self._resources.metrics.lost_bytes.labels(reason).inc(size)
        name = path_text(path)
        logger.log(logging.getLevelName(level), "%s was %s: %s", name, reason, text)
        event = {
            "event_action": "logs_lost", "level": level, "service": "mm2slo-logship",
            "path": name, "reason": reason, "bytes": size,
            "message": f"{name} was {reason}: {text}",
        }  # fmt: skip
        item = Item(envelope(self._loss_start, time.time(), event), None, 0)
        self._add([item], time.monotonic())

    def _add(self, items: Sequence[Item], now: float) -> None:
        self._batch.add(items, now)
        self._read_at.extend(now for _ in items)

    def _ship(self) -> bool:
        """Whether there was anything to read or to send."""
        now = time.monotonic()
        has_read = False
        files = self.watch.files
        for number in range(len(files)):
            if self._batch.is_full:
                break
            has_read |= self._read(files[(self._turn + number) % len(files)], now)
        self._turn += 1  # a busy file must not keep the others waiting
        if not self._batch.is_due(now):
            return has_read
        self.delivery.deliver(self._batch.take(now))
        return True

    def _read(self, file: TailedFile, now: float) -> bool:
        position = file.position
        try:
            items = file.read(now)
        except (OSError, EOFError) as error:
            self.watch.reopen(file, error)
            return False
        if items:
            self._add(items, now)
        self._resources.metrics.events_read.inc(len(items))
        return file.position > position

    def _accept(self, batch: EventBatch) -> None:
        ends = {item.file: item.end for item in batch.items if item.file is not None}
        for file, end in ends.items():
            self.watch.accept(file, end)
        self.delivery.until_written(self._resources.checkpoints.save)
        for _ in batch.items:
            self._read_at.popleft()

    def _finish(self) -> None:
        """Wait a little for acknowledgements, and write the checkpoints."""
        until = time.monotonic() + _ACK_GRACE
        try:
            while len(self.delivery.window) and time.monotonic() < until:
                time.sleep(_POLL_INTERVAL)
                self.delivery.settle()
            self._resources.checkpoints.save(sync=True)
        except Stopping:
            pass  # the disk is full, or Splunk accepts no more
        except OSError as error:
            logger.error("cannot write the checkpoints: %s", error)

    def _wait(self, seconds: float) -> None:
        """Wait, and follow the files meanwhile: they are rotated during an outage, too."""
        until = time.monotonic() + seconds
        while True:
            self._follow()
            left = until - time.monotonic()
            if self._resources.stop.wait(max(min(left, _REFRESH_INTERVAL), 0.0)):
                raise Stopping
            if time.monotonic() >= until:
                return

    def _follow(self) -> None:
        now = time.monotonic()
        if now - self._refreshed_at >= _REFRESH_INTERVAL:
            self._refreshed_at = now
            self.watch.refresh()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShipSettings:
    """The section `logship:`, and what was opened for it.

    `redactions` are the counts of redacted secrets by pattern, which grow while it runs.
    """

    section: LogshipConfig
    sources: tuple[Source, ...]
    connection: Connection
    version: str
    redactions: Mapping[str, int]
