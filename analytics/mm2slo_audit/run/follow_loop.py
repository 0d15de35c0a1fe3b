"""Repeats incremental runs until a signal ends them."""

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
    on_report: Callable[[RunReport], None],
    wait: Callable[[float], None],
) -> None:
    """Audit every *every* seconds, each run from where the last one was complete; never returns.

    The first run uses *options*, and its errors are raised. Errors of later runs, as of a cluster
    that is unreachable for a while, are shown, and the next run tries again. *on_report* gets each
    report, *wait* sleeps.
    """
    on_report(audit(config, options, ports))
    options = replace(options, span=Span())
    while True:
        wait(every)
        try:
            on_report(audit(config, options, ports))
        except UserError as error:
            ports.progress.warn(f"run failed, next run in {every:g} s: {error}")
