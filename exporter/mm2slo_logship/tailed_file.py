"""One open log file, from its bytes to batches of the envelopes of its events.

Container logs are joined from the lines that Kubernetes writes: `<time> <stream> <P or F> <text>`.
Format: https://github.com/kubernetes/design-proposals-archive (CRI logging).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from mm2slo_logship.hec_protocol import envelope, envelope_start
from mm2slo_logship.log_events import Line, ParsedEvent, Parser
from mm2slo_logship.log_files import HEAD, FileContent, Source, digest, has_head, path_text
from mm2slo_logship.ship_state import FileCheckpoint

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
        self, path: Path, source: Source, content: FileContent, checkpoint: FileCheckpoint
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
            host=source.host,
            source=path_text(path),
            sourcetype=source.sourcetype,
            index=source.index,
        )

    def read(self, now: float) -> list[Item]:
        """The events of the next lines; none once it is truncated. Raises OSError, EOFError."""
        if self._reader.offset and self.is_truncated():
            return []  # it may have grown again: the offset may lie within another line
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
        events.sort(key=attrgetter("start"))
        return self._items(events, times, block.lines[0].start if block.is_cut else -1)

    def accept(self, end: int) -> None:
        """Splunk has, or the dead letters have, all events up to *end*."""
        if end > self.checkpoint.offset:
            self.checkpoint = replace(self.checkpoint, offset=end, path=path_text(self.path))

    def refresh(self) -> None:
        """Note size and head, so that a later start recognises the file. Raises OSError."""
        if self.checkpoint.offset >= self._latest and not self._open_starts():
            self.accept(self._reader.offset)  # blank lines are part of no event
        self.checkpoint = replace(self.checkpoint, size=self.content.size())
        length = min(HEAD, self._reader.offset)
        if length > self.checkpoint.head_length and not self.content.is_complete:
            head = digest(self.content.read_at(0, length))
            self.checkpoint = replace(self.checkpoint, head_length=length, head_hash=head)

    def is_truncated(self) -> bool:
        """Whether the file became shorter than what was read, or starts otherwise."""
        if self.content.is_complete:
            return False
        # logrotate's copytruncate keeps name and inode, and the file may have grown again since.
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

    @property
    def unread(self) -> int:
        """Bytes that are part of no event, when the file was last looked at."""
        return max(self.checkpoint.size - min([self._reader.offset, *self._open_starts()]), 0)

    def _open_starts(self) -> list[int]:
        """Where the lines start that are part of no event yet."""
        opened = [each.open_start for each in self._streams.values() if each.open_start is not None]
        return opened + (self._cri.open_starts() if self._cri else [])

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
            # Last: a line may have a field of this name, which would not identify the event.
            named = {**fields, "event_uid": f"{file_id}-{start}"}
            if start <= cut < end:
                named["truncated"] = True
            if time is None:
                time = times.get(start)
            items.append(Item(envelope(self._start, time, named), self, end))
        if self._cri is not None:
            return self._with_safe_ends(items, events)
        self._latest = self._safe = items[-1].end
        return items

    def _with_safe_ends(self, items: list[Item], events: Sequence[ParsedEvent]) -> list[Item]:
        """Ends that lie in no line of another stream, so that a restart reads whole lines."""
        limits = [min(self._open_starts(), default=self._reader.offset)]
        for event in reversed(events[1:]):
            limits.append(min(limits[-1], event.start))
        found = []
        for item, limit in zip(items, reversed(limits), strict=True):
            self._latest = max(self._latest, item.end)
            if self._latest <= limit:
                self._safe = self._latest
            found.append(item._replace(end=self._safe))
        return found


IDLE: Final = 2.0
"""Seconds without a new line after which an event of several lines is complete."""


class EventStream:
    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._fed_at = 0.0
        self.open_start: int | None = None  # of the first line without an event

    def feed(self, lines: Sequence[Line], now: float) -> list[ParsedEvent]:
        self._fed_at = now
        events = self._parser.feed(lines)
        if events:
            self.open_start = None
        done = events[-1].end if events else -1
        if self.open_start is None and lines[-1].start >= done:
            starts = (line.start for line in lines if line.start >= done and line.text.strip())
            self.open_start = next(starts, None)
        return events

    def flush(self, now: float, *, final: bool) -> list[ParsedEvent]:
        """The open event if no line followed for a while, or none will with *final*."""
        if self.open_start is None or not (final or now - self._fed_at >= IDLE):
            return []
        self.open_start = None
        return self._parser.flush()


_STREAMS = (b"stdout", b"stderr")


class CriJoiner:
    """Joins the partial lines of each stream."""

    def __init__(self) -> None:
        self._partial: dict[str, list[Line]] = {}

    def join(
        self, lines: Sequence[Line], *, final: bool = False
    ) -> tuple[Mapping[str, list[Line]], Mapping[int, float]]:
        """The complete lines per stream, and the runtime's time of each by its start.

        With *final*, partial lines are complete.
        """
        found: dict[str, list[Line]] = {}
        times: dict[int, float] = {}
        for line in lines:
            stamp, stream, tag, text = _split(line.text)
            parts = self._partial.setdefault(stream, [])
            parts.append(line._replace(text=text))
            if tag.startswith(b"P"):
                continue
            if (time := _time(stamp)) is not None:
                times[parts[0].start] = time
            found.setdefault(stream, []).append(_joined(parts))
        if final:
            found |= {stream: [_joined(each)] for stream, each in self._partial.items() if each}
        return found, times

    def open_starts(self) -> list[int]:
        """Where the lines start that are not complete yet."""
        return [parts[0].start for parts in self._partial.values() if parts]


def _joined(parts: list[Line]) -> Line:
    text = b"".join(part.text for part in parts)[:MAX_LINE]
    line = Line(parts[0].start, parts[-1].end, text)
    parts.clear()
    return line


def _split(text: bytes) -> tuple[bytes, str, bytes, bytes]:
    parts = text.split(b" ", 3)
    if len(parts) >= 3 and parts[1] in _STREAMS:
        return parts[0], parts[1].decode(), parts[2], parts[3] if len(parts) == 4 else b""
    return b"", "", b"F", text  # not from the runtime: a line as it is


def _time(stamp: bytes) -> float | None:
    try:
        return datetime.fromisoformat(stamp.decode("ascii")).timestamp()
    except ValueError:
        return None


MAX_LINE: Final = 256 * 1024
"""Longer lines are cut here; the rest is skipped."""


class LineBlock(NamedTuple):
    """Lines that follow each other; a cut line is alone in its block."""

    lines: list[Line]
    is_cut: bool = False


class LineReader:
    """Reads *content* from *offset*, the start of a line."""

    def __init__(self, content: FileContent, offset: int) -> None:
        self._content = content
        self._searched = 0  # up to here, the line at `offset` has no end
        self.offset = offset

    def read(self, *, final: bool = False) -> LineBlock:
        """The next complete lines, if any.

        With *final*, the rest of the file is a line even without a line end.
        """
        block = self._content.read_at(self.offset, MAX_LINE)
        # A file that was truncated while its writer kept the offset starts with zeros.
        while block and block[0] == 0 and not block.strip(b"\0"):
            self.offset += len(block)
            block = self._content.read_at(self.offset, MAX_LINE)
        length = block.rfind(b"\n") + 1
        if not length:
            if len(block) == MAX_LINE:
                return self._long_line(block, final=final)
            if not final or not block:
                return LineBlock([])
            lines = [Line(self.offset, self.offset + len(block), block)]
        else:
            lines = []
            start = self.offset
            for text in block[: length - 1].split(b"\n"):
                end = start + len(text) + 1
                lines.append(Line(start, end, text))
                start = end
        self.offset = lines[-1].end
        if b"\r" in block or b"\0" in block:
            lines = [_without_control(line) for line in lines]
        return LineBlock(lines)

    def _long_line(self, block: bytes, *, final: bool) -> LineBlock:
        position = max(self._searched, self.offset + len(block))
        while piece := self._content.read_at(position, MAX_LINE):
            found = piece.find(b"\n")
            if found >= 0:
                position += found + 1
                break
            position += len(piece)
        else:
            self._searched = position
            if not final:
                return LineBlock([])
        line = Line(self.offset, position, block)
        self.offset, self._searched = position, 0
        return LineBlock([_without_control(line)], is_cut=True)


def _without_control(line: Line) -> Line:
    return line._replace(text=line.text.replace(b"\0", b"").removesuffix(b"\r"))


MAX_BYTES: Final = 1_000_000
"""Below the limit of every release: 1 MB before Splunk 7, 5 MB in trials of Splunk Cloud."""
MAX_EVENTS: Final = 1_000


class EventBatch(NamedTuple):
    items: tuple[Item, ...]

    @property
    def body(self) -> bytes:
        return b"".join(item.body for item in self.items)

    def split(self, at: int) -> tuple[EventBatch, EventBatch]:
        return EventBatch(self.items[:at]), EventBatch(self.items[at:])


class BatchBuilder:
    """Collects items until a batch is full, or as old as *linger* seconds."""

    def __init__(self, linger: float) -> None:
        self._linger = linger
        self._items: list[Item] = []
        self._size = 0
        self.since = 0.0  # when the first item was added

    def __len__(self) -> int:
        return len(self._items)

    @property
    def is_full(self) -> bool:
        return self._size >= MAX_BYTES or len(self._items) >= MAX_EVENTS

    def add(self, items: Iterable[Item], now: float) -> None:
        if not self._items:
            self.since = now
        for item in items:
            self._items.append(item)
            self._size += len(item.body)

    def is_due(self, now: float) -> bool:
        """Whether there is something to send now."""
        return bool(self._items) and (self.is_full or now - self.since >= self._linger)

    def take(self, now: float) -> EventBatch:
        """As many items as one request may have; at least one, however large it is."""
        size = count = 0
        for item in self._items[:MAX_EVENTS]:
            if count and size + len(item.body) > MAX_BYTES:
                break
            size += len(item.body)
            count += 1
        batch = EventBatch(tuple(self._items[:count]))
        del self._items[:count]
        self._size -= size
        self.since = now
        return batch
