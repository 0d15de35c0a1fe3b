"""What one entry of `logship.sources` reads, and how its events are labelled."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mm2slo_logship.events.parsed_event import Line, ParsedEvent


class EventParser(Protocol):
    """Makes redacted events of the lines of one stream."""

    def feed(self, lines: Sequence[Line]) -> list[ParsedEvent]: ...

    def flush(self) -> list[ParsedEvent]:
        """The event whose lines may not be complete, if any."""
        ...


class FoundFile(NamedTuple):
    """A file that a pattern matches; *is_rotated*: kubelet has rotated it."""

    path: Path
    pattern: str
    is_rotated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Files of one kind, and the metadata of their events."""

    patterns: tuple[str, ...]
    new_parser: Callable[[], EventParser]
    host: str
    sourcetype: str
    index: str | None = None
    is_cri: bool = False

    def find_files(self) -> Iterator[FoundFile]:
        """Existing files, behind symlinks, with those that kubelet rotated."""
        for pattern in self.patterns:
            for name in sorted(glob.iglob(pattern, recursive=True)):  # noqa: PTH207 - absolute
                path = Path(os.path.realpath(name))
                yield FoundFile(path, pattern)
                if self.is_cri:
                    for sibling in sorted(path.parent.glob(f"{glob.escape(path.name)}.*")):
                        if sibling.suffix != ".tmp":
                            yield FoundFile(sibling, pattern, is_rotated=True)
