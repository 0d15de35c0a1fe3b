"""A finished exposition: bytes ready to be sent, in each format and encoding."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_exporter.exposition.metadata import Format


class Encoding(StrEnum):
    """A content encoding; the value is its HTTP name."""

    IDENTITY = "identity"
    GZIP = "gzip"


@dataclass(frozen=True, slots=True)
class Body:
    """A message body as chunks in order; formats share the large ones."""

    chunks: tuple[bytes, ...]

    @property
    def length(self) -> int:
        """Bytes in all."""
        return sum(map(len, self.chunks))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a scrape gets. `series` counts as Prometheus does, buckets each."""

    bodies: Mapping[tuple[Format, Encoding], Body]
    series: int

    def body(self, fmt: Format, encoding: Encoding) -> Body:
        """The body in one format and encoding."""
        return self.bodies[fmt, encoding]
