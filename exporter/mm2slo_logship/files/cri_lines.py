"""Lines of container logs as Kubernetes writes them: `<time> <stream> <P or F> <text>`.

Format: https://github.com/kubernetes/design-proposals-archive (CRI logging).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from mm2slo_logship.events.parsed_event import Line
from mm2slo_logship.files.line_reader import MAX_LINE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
