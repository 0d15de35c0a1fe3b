"""A rendered exposition, in each format and encoding."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_exporter.exposition.exposition_format import Format


class Encoding(StrEnum):
    """A content encoding; the value is its HTTP name."""

    IDENTITY = "identity"
    GZIP = "gzip"


@dataclass(frozen=True, slots=True)
class Body:
    """A message body as chunks; formats share the large ones."""

    chunks: tuple[bytes, ...]

    @property
    def length(self) -> int:
        return sum(map(len, self.chunks))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The response to a scrape. `series` counts each bucket, as Prometheus does."""

    bodies: Mapping[tuple[Format, Encoding], Body]
    series: int

    def body(self, fmt: Format, encoding: Encoding) -> Body:
        return self.bodies[fmt, encoding]
