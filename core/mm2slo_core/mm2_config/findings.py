"""Findings about a MirrorMaker 2 configuration: what, where, why it matters, what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters; an error means that the file cannot be used as it is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Where a setting was written; *line* counts from 1."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. *check* is its stable name, as in `unknown-key`; no text shows a secret."""

    check: str
    severity: Severity
    origin: Origin
    what: str
    why: str
    action: str

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR

    def __str__(self) -> str:
        return f"{self.origin}: {self.severity}: {self.what} ({self.action}) [{self.check}]"
