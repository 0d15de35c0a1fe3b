"""Base URLs for links in reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """URLs without a trailing slash.

    `service` is the external URL of this service; empty makes links relative, None omits
    them, as for a file that is passed on.
    """

    service: str | None = ""
    dashboard: str | None = None
    """Grafana."""
    runbook: str | None = None
    prometheus: str | None = None
    rules_version: str | None = None
    """Of the recording rules that produced the values."""
