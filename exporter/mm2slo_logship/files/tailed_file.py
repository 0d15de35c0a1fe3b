"""One open log file, from its bytes to the envelopes of its events."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_logship.files.cri_lines import CriJoiner
from mm2slo_logship.files.event_stream import EventStream
from mm2slo_logship.files.file_head import HEAD, digest, has_head
from mm2slo_logship.files.line_reader import LineReader
from mm2slo_logship.hec.envelope import envelope, envelope_start

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mm2slo_logship.checkpoints import Checkpoint
    from mm2slo_logship.events.parsed_event import Line, ParsedEvent
    from mm2slo_logship.files.file_content import FileContent
    from mm2slo_logship.files.source import Source

ROTATION_GRACE: Final = 5.0
"""Seconds for which a program may write to a file that was renamed."""


class Item(NamedTuple):
    """An envelope; once it is accepted, *file* is accepted up to *end*."""

    body: bytes
    file: TailedFile | None
    end: int


class TailedFile:
    """Reads events of a file; `checkpoint` is up to where they are accepted."""

    def __init__(
        self, path: Path, source: Source, content: FileContent, checkpoint: Checkpoint
    ) -> None:
        self.path = path
        self.source = source
        self.content = content
        self.checkpoint = checkpoint
        self.rotated_at: float | None = None
        self._reader = LineReader(content, checkpoint.offset)
        self._cri = CriJoiner() if source.is_cri else None
        self._streams: dict[str, EventStream] = {}
        self._is_drained = False
        self._latest = self._safe = checkpoint.offset
        self._start = envelope_start(
            host=source.host, source=str(path), sourcetype=source.sourcetype, index=source.index
        )

    def read(self, now: float) -> list[Item]:
        """The events of the next lines. Raises OSError, EOFError."""
        final = self._is_final(now)
        block = self._reader.read(final=final)
        times: Mapping[int, float] = {}
        streams: Mapping[str, list[Line]] = {"": block.lines} if block.lines else {}
        if self._cri is not None:
            streams, times = self._cri.join(block.lines, final=final and not block.lines)
        events = []
        for name, lines in streams.items():
            if name not in self._streams:
                self._streams[name] = EventStream(self.source.new_parser())
            events += self._streams[name].feed(lines, now)
        for stream in self._streams.values():
            events += stream.flush(now, final=final and not block.lines)
        self._is_drained = final and not block.lines
        if not events:
            return []
        events.sort(key=_start)
        return self._items(events, times, block.lines[0].start if block.is_cut else -1)

    def accept(self, end: int) -> None:
        """Splunk has, or the dead letters have, all events up to *end*."""
        if end > self.checkpoint.offset:
            self.checkpoint = replace(self.checkpoint, offset=end, path=str(self.path))

    def refresh(self) -> None:
        """Note size and head, so that a later start recognises the file. Raises OSError."""
        self.checkpoint = replace(self.checkpoint, size=self.content.size())
        length = min(HEAD, self._reader.offset)
        if length > self.checkpoint.head_length and not self.content.is_complete:
            head = digest(self.content.read_at(0, length))
            self.checkpoint = replace(self.checkpoint, head_length=length, head_hash=head)

    def is_truncated(self) -> bool:
        """Whether the file became shorter than what was read, or starts otherwise."""
        if self.content.is_complete:
            return False
        return self.content.size() < self._reader.offset or not has_head(
            self.content, self.checkpoint
        )

    @property
    def is_finished(self) -> bool:
        """Whether the file was rotated, read to its end, and all events were accepted."""
        return self._is_drained and self.checkpoint.offset >= self._safe

    @property
    def position(self) -> int:
        """Up to where lines were read."""
        return self._reader.offset

    @property
    def unsent(self) -> int:
        """Bytes that were not accepted, when the file was last looked at."""
        return max(self.checkpoint.size - self.checkpoint.offset, 0)

    def _is_final(self, now: float) -> bool:
        if self.content.is_complete:
            return True
        return self.rotated_at is not None and now - self.rotated_at >= ROTATION_GRACE

    def _items(
        self, events: Sequence[ParsedEvent], times: Mapping[int, float], cut: int
    ) -> list[Item]:
        file_id = self.checkpoint.file_id
        items = []
        for event in events:
            time, fields, start, end = event
            named = {"event_uid": f"{file_id}-{start}", **fields}
            if start <= cut < end:
                named["truncated"] = True
            if time is None:
                time = times.get(start)
            items.append(Item(envelope(self._start, time, named), self, end))
        self._safe = items[-1].end if self._cri is None else self._safe
        return items if self._cri is None else self._with_safe_ends(items, events)

    def _with_safe_ends(self, items: list[Item], events: Sequence[ParsedEvent]) -> list[Item]:
        """Ends that lie in no line of another stream, so that a restart reads whole lines."""
        cri = self._cri.open_starts() if self._cri else []
        opened = [each.open_start for each in self._streams.values() if each.open_start is not None]
        limits = [min(cri + opened, default=self._reader.offset)]
        for event in reversed(events[1:]):
            limits.append(min(limits[-1], event.start))
        found = []
        for item, limit in zip(items, reversed(limits), strict=True):
            self._latest = max(self._latest, item.end)
            if self._latest <= limit:
                self._safe = self._latest
            found.append(item._replace(end=self._safe))
        return found


def _start(event: ParsedEvent) -> int:
    return event.start
