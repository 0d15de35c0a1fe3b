"""Where a reader finds more, as far as the installation has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """Addresses without a trailing slash. `service` is that of this service, as people reach it.

    With an empty `service` links are relative to the root; None leaves them out, as a file that
    is passed around needs it.
    """

    service: str | None = ""
    dashboard: str | None = None
    """Of Grafana."""
    runbook: str | None = None
    """Of the runbooks."""
    prometheus: str | None = None
    rules_version: str | None = None
    """Of the rules that the figures were recorded by."""
