"""The files whose events go to one index, and the thread that ships them."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_logship.delivery.delivery import Delivery
from mm2slo_logship.files.file_watch import FileWatch
from mm2slo_logship.files.tailed_file import Item
from mm2slo_logship.hec.batch import BatchBuilder
from mm2slo_logship.hec.envelope import envelope, envelope_start

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence
    from pathlib import Path

    from mm2slo_logship.checkpoints import Checkpoints
    from mm2slo_logship.delivery.dead_letters import DeadLetters
    from mm2slo_logship.delivery.endpoints import Endpoints
    from mm2slo_logship.files.source import Source
    from mm2slo_logship.files.tailed_file import TailedFile
    from mm2slo_logship.hec.batch import Batch
    from mm2slo_logship.hec.token_file import Token
    from mm2slo_logship.ship_metrics import ShipMetrics
    from mm2slo_logship.ship_settings import ShipSettings

logger = logging.getLogger(__name__)

_POLL_INTERVAL: Final = 0.2
_REFRESH_INTERVAL: Final = 1.0
_ACK_GRACE: Final = 5.0
_SOURCETYPE: Final = "repl:logship:json"


class Stopping(Exception):  # noqa: N818 - a request, not an error
    """The process shall end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What the lanes of a process share."""

    settings: ShipSettings
    checkpoints: Checkpoints
    token: Token
    dead_letters: DeadLetters
    metrics: ShipMetrics
    stop: threading.Event


class Lane:
    """Reads, sends and checkpoints the *sources* of one index."""

    def __init__(
        self, sources: Sequence[Source], endpoints: Endpoints, resources: Resources
    ) -> None:
        settings = resources.settings
        self.index = sources[0].index
        self.watch = FileWatch(
            sources, resources.checkpoints, self, max_deleted_bytes=settings.max_deleted_bytes
        )
        self._resources = resources
        self._batch = BatchBuilder(settings.linger)
        self._refreshed_at = 0.0
        self._turn = 0
        self._oldest = 0.0  # when the oldest event was read that is not accepted
        self._loss_start = envelope_start(
            host=sources[0].host, source="mm2slo logship", sourcetype=_SOURCETYPE, index=self.index
        )
        self.delivery = Delivery(
            endpoints, resources.token, resources.dead_letters, resources.metrics,
            index=self.index or "default", has_ack=settings.has_ack,
            accept=self._accept, wait=self._wait, clock=time.monotonic,
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
        return time.monotonic() - self._oldest if self._oldest else 0.0

    def lost(self, path: Path, reason: str, size: int) -> None:
        """Count a loss, and say so in Splunk."""
        if reason == "deleted" and not size:
            return
        level = "ERROR" if size else "INFO"
        text = f"{size} bytes are lost" if size else "all that was read of it was sent"
        self._resources.metrics.lost_files.labels(reason).inc()
        self._resources.metrics.lost_bytes.labels(reason).inc(size)
        logger.log(logging.getLevelName(level), "%s was %s: %s", path, reason, text)
        event = {
            "event_action": "logs_lost", "level": level, "service": "mm2slo-logship",
            "path": str(path), "reason": reason, "bytes": size,
            "message": f"{path} was {reason}: {text}",
        }  # fmt: skip
        now = time.time()
        self._batch.add([Item(envelope(self._loss_start, now, event), None, 0)], time.monotonic())

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
            self._batch.add(items, now)
            self._oldest = self._oldest or now
        self._resources.metrics.events_read.inc(len(items))
        return file.position > position

    def _accept(self, batch: Batch) -> None:
        ends = {item.file: item.end for item in batch.items if item.file is not None}
        for file, end in ends.items():
            self.watch.accept(file, end)
        self.delivery.until_written(self._resources.checkpoints.save)
        self._oldest = self._batch.since if self._batch else 0.0

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
            now = time.monotonic()
            if now - self._refreshed_at >= _REFRESH_INTERVAL:
                self._refreshed_at = now
                self.watch.refresh()
            if self._resources.stop.wait(max(min(until - now, _REFRESH_INTERVAL), 0.0)):
                raise Stopping
            if time.monotonic() >= until:
                return
