"""One run after the other, until told to end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mm2slo_audit.run.audit_run import audit
from mm2slo_audit.run.time_span import Span
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_audit.run.audit_options import AuditOptions
    from mm2slo_audit.run.audit_ports import Ports
    from mm2slo_audit.run.run_report import RunReport
    from mm2slo_core.config import Config


def follow(
    config: Config,
    options: AuditOptions,
    ports: Ports,
    *,
    every: float,
    told: Callable[[RunReport], None],
    wait: Callable[[float], None],
) -> None:
    """Audit every *every* seconds, each run from where the last one was complete; no return.

    The first run audits what *options* say. *told* gets each report, *wait* sleeps. Raises what
    the first run raises: later ones may meet a cluster that is away for a while, which is said
    and tried again.
    """
    told(audit(config, options, ports))
    options = replace(options, span=Span())
    while True:
        wait(every)
        try:
            told(audit(config, options, ports))
        except UserError as error:
            ports.progress.say(f"this run failed, the next one is in {every:g} s: {error}")
