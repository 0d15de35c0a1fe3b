"""Log files, sources and parsers for tests of mm2slo logship."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from mm2slo_core.config.logship_config import LogshipConfig, LogSource
from mm2slo_logship.event_delivery import ShipMetrics
from mm2slo_logship.file_watch import FileWatch
from mm2slo_logship.hec_client import Connection
from mm2slo_logship.log_events import Line, ParsedEvent, Parser, ParserSettings
from mm2slo_logship.log_files import Source
from mm2slo_logship.ship_state import Checkpoints
from mm2slo_logship.shipper import Shipper, ShipSettings


class LogWriter:
    """Writes to `mm2.log` in *folder* until the end of the block; the lines have numbers from 0.

    It pauses at `limit` lines, so that the reader is never far behind.
    """

    def __init__(self, folder: Path, *, seed: int, rotate_after: int = 4_000) -> None:
        self._path = folder / "mm2.log"
        self._random = random.Random(seed)
        self._rotate_after = rotate_after
        self._rotations = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.lines = 0
        self.limit = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        in_file = 0
        while not self._stop.wait(0.005):
            count = min(self._random.randrange(1, 30), self.limit - self.lines)
            if count <= 0:
                continue
            with self._path.open("a") as log:
                for number in range(self.lines, self.lines + count):
                    text = "x" * self._random.randrange(300)
                    log.write(json.dumps({"n": number, "message": text}) + "\n")
            self.lines += count
            in_file += count
            if in_file >= self._rotate_after:
                in_file = 0
                self._rotations += 1
                self._path.rename(self._path.with_name(f"mm2.log.{self._rotations:04d}"))


def make_settings(
    folder: Path, urls: list[str], *sources: Source, has_ack: bool = False
) -> ShipSettings:
    token = folder / "token"
    if not token.exists():
        token.write_text("token-1")
        token.chmod(0o600)
    section = LogshipConfig(
        endpoints=tuple(urls),
        token_file=str(token),
        sources=(LogSource(paths=("unused",)),),
        state_dir=str(folder / "state"),
        linger=0.05,
        acknowledge=has_ack,
    )
    return ShipSettings(
        section=section, sources=sources, connection=Connection(), version="0.1", redactions={}
    )


@contextmanager
def running_shipper(settings: ShipSettings) -> Iterator[ShipMetrics]:
    """Ship until the end of the block; a failure of a lane is raised there."""
    metrics = ShipMetrics()
    shipper = Shipper(settings, metrics)
    shipper.start()
    try:
        yield metrics
        shipper.wait(0.0)
    finally:
        shipper.stop()


def value(metrics: ShipMetrics, name: str, **labels: str) -> float:
    """The value of a series; 0 if it is absent."""
    return metrics.registry.get_sample_value(f"mm2_logship_{name}", labels) or 0.0


class RecordedLosses:
    def __init__(self) -> None:
        self.found: list[tuple[str, str, int]] = []

    def lost(self, path: Path, reason: str, size: int) -> None:
        self.found.append((path.name, reason, size))


class JsonLineParser(Parser):
    """Each line is an event."""

    def __init__(self) -> None:
        super().__init__(ParserSettings())

    def feed(self, lines: Sequence[Line]) -> list[ParsedEvent]:
        return [self._line_event(line) for line in lines if line.text]

    def flush(self) -> list[ParsedEvent]:
        return []

    def _line_event(self, line: Line) -> ParsedEvent:
        try:
            fields = json.loads(line.text)
            return ParsedEvent(fields.pop("time", None), fields, line.start, line.end)
        except (ValueError, AttributeError):
            text = line.text.decode(errors="replace")
            return ParsedEvent(None, {"message": text, "parse_error": True}, line.start, line.end)


def make_source(
    *patterns: Path | str,
    parser: Callable[[], Parser] = JsonLineParser,
    is_cri: bool = False,
    index: str | None = None,
) -> Source:
    return Source(
        patterns=tuple(map(str, patterns)),
        new_parser=parser,
        host="host-1",
        sourcetype="mm2:connect:json",
        index=index,
        is_cri=is_cri,
    )


def make_watch(
    source: Source,
    state: Path,
    *,
    sources: Sequence[Source] = (),
    checkpoints: Checkpoints | None = None,
    losses: RecordedLosses | None = None,
    clock: StoppedClock | None = None,
    max_deleted_bytes: int = 1 << 30,
) -> FileWatch:
    state.mkdir(exist_ok=True)
    return FileWatch(
        sources or [source],
        checkpoints or Checkpoints(state),
        (losses or RecordedLosses()).lost,
        index=source.index,
        max_deleted_bytes=max_deleted_bytes,
        clock=clock or StoppedClock(),
    )


def read_all(
    watch: FileWatch, *, now: float = 1_000.0, accept: bool = True
) -> list[dict[str, Any]]:
    """The events of all files up to their ends; accepted and saved, as after a delivery."""
    found = []
    for file in watch.files:
        while items := file.read(now):
            found += [json.loads(item.body)["event"] for item in items]
            if accept:
                watch.accept(file, items[-1].end)
    if accept:
        save_checkpoints(watch)
    return found


def save_checkpoints(watch: FileWatch) -> None:
    """Write the checkpoints, as a lane does after a delivery."""
    watch._checkpoints.save()


class StoppedClock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class BracketParser(Parser):
    """An event starts with a bracket and has all lines up to the next one."""

    def __init__(self) -> None:
        super().__init__(ParserSettings())
        self._lines: list[Line] = []

    def feed(self, lines: Sequence[Line]) -> list[ParsedEvent]:
        events = []
        for line in lines:
            if line.text.startswith(b"["):
                events += self.flush()
            self._lines.append(line)
        return events

    def flush(self) -> list[ParsedEvent]:
        lines, self._lines = self._lines, []
        if not lines:
            return []
        text = b"\n".join(line.text for line in lines).decode()
        return [ParsedEvent(None, {"message": text}, lines[0].start, lines[-1].end)]


def parse_log(text: bytes) -> list[ParsedEvent]:
    """The events of a whole log file."""
    parser, start, found = Parser(ParserSettings()), 0, []
    for each in text.splitlines(keepends=True):
        found.append(Line(start, start + len(each), each.rstrip(b"\n")))
        start += len(each)
    return [*parser.feed(found), *parser.flush()]
