"""What a shipper needs: `logship:` of mm2slo.yaml with resolved files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mm2slo_logship.files.source import Source
    from mm2slo_logship.hec.hec_client import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class ShipSettings:
    """`redactions` are the counts of redacted secrets by pattern, which grow while it runs."""

    endpoints: tuple[str, ...]
    token_file: Path
    sources: tuple[Source, ...]
    state_dir: Path
    connection: Connection
    version: str
    redactions: Mapping[str, int]
    has_ack: bool = False
    linger: float = 1.0
    max_dead_letter_bytes: int = 100_000_000
    max_deleted_bytes: int = 1 << 30
