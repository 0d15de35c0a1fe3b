"""Watches of files, and what they read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from log_shipping.clocks import StoppedClock
from log_shipping.parsers import JsonLineParser
from mm2slo_logship.file_watch import FileWatch
from mm2slo_logship.log_files import EventParser, Source
from mm2slo_logship.ship_state import Checkpoints


class RecordedLosses:
    def __init__(self) -> None:
        self.found: list[tuple[str, str, int]] = []

    def lost(self, path: Path, reason: str, size: int) -> None:
        self.found.append((path.name, reason, size))


def make_source(
    *patterns: Path | str,
    parser: Callable[[], EventParser] = JsonLineParser,
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
    losses: RecordedLosses | None = None,
    clock: StoppedClock | None = None,
    max_deleted_bytes: int = 1 << 30,
) -> FileWatch:
    state.mkdir(exist_ok=True)
    return FileWatch(
        [source],
        Checkpoints(state),
        losses or RecordedLosses(),
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
