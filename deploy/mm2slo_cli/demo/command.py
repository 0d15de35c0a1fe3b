"""Runs `mm2slo demo`."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final

import typer
from rich.console import Console
from rich.text import Text

from mm2slo_cli.demo.alert_stack import missing_programs, run_alert_stack
from mm2slo_cli.demo.demo_environment import start_environment
from mm2slo_cli.demo.demo_screen import address_lines, screen
from mm2slo_cli.demo.final_figures import DEADLINE, wait_for_final_figures
from mm2slo_cli.demo.live_view import json_line, show_live, write_json, write_lines
from mm2slo_cli.demo.report_page import serve_report_page
from mm2slo_cli.demo.scenario_run import check_options, run_scenario
from mm2slo_cli.demo.shipped_logs import ship_logs
from mm2slo_cli.demo.shutdown import prepare_shutdown
from mm2slo_cli.demo.traffic_audit import audit_traffic
from mm2slo_cli.lab_terminal import show_steps
from mm2slo_cli.signals import Interrupted, interrupt_on_signals, wait_for_signal
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_lab import Lab

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_cli.demo.alert_stack import AlertStack
    from mm2slo_cli.demo.demo_environment import DemoEnvironment
    from mm2slo_cli.demo.final_figures import FinalFigures
    from mm2slo_cli.signals import SignalInterrupts


_AUDIT_SECONDS: Final = 30.0
"""Expected duration of the audit; --once skips it when less time is left."""


def run(
    seconds: float | None,
    *,
    once: bool,
    as_json: bool,
    keep: bool = False,
    audited: bool = True,
    scenario: str | None = None,
) -> None:
    """Start everything, show the figures, audit the traffic, and shut down.

    Without *once*, figures are shown for *seconds* or until a signal; exit code 0 for SIGTERM and
    SIGHUP, 130 for Ctrl-C. With *once*, they are printed when complete, or after *seconds*; exit
    code 0, or 1 if something is missing; *keep* then waits for a signal. If *audited*, the traffic
    is audited at the end, except for JSON output, too little time, SIGTERM or SIGHUP; a second
    Ctrl-C skips it. The report service runs and logs are shipped if their extras are installed,
    Prometheus and Alertmanager run if they are installed and neither *once* nor JSON is given. A
    *scenario* is run instead. Raises UserError.
    """
    if scenario is not None:
        check_options(scenario, once=once, as_json=as_json, keep=keep)
    if keep and not once:
        raise UserError("--keep requires --once; without --once the demo keeps running anyway")
    code = 0
    with interrupt_on_signals() as interrupts:
        try:
            if scenario is None:
                code = _run(
                    interrupts, seconds, once=once, as_json=as_json, keep=keep, audited=audited
                )
            else:
                run_scenario(scenario, interrupts)
        except Interrupted as signal_received:
            is_plain_end = not once and signal_received.number != signal.SIGINT
            code = 0 if is_plain_end else signal_received.exit_code
        except BrokenPipeError:
            # The reader has closed the pipe, as in `| head`; a last flush would fail.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 1
        except KafkaOperationError as problem:
            raise UserError(str(problem)) from None
    if code:
        raise typer.Exit(code)


def _run(
    interrupts: SignalInterrupts,
    seconds: float | None,
    *,
    once: bool,
    as_json: bool,
    keep: bool,
    audited: bool,
) -> int:
    """Run the demo; returns the exit code."""
    # Progress goes to stderr, output to stdout.
    progress = Console(stderr=True)
    audited = audited and not as_json
    started = time.monotonic()
    with ExitStack() as resources:
        with show_steps(progress, "starting the demo") as report_step:
            lab = resources.enter_context(Lab.start(progress=report_step))
            environment = resources.enter_context(start_environment(lab, report_step))
            if keep or not once:
                report_step("starting the report service")
                resources.enter_context(serve_report_page(environment))
                resources.enter_context(ship_logs(environment))
            final = (
                wait_for_final_figures(environment, seconds or DEADLINE, report_step)
                if once
                else None
            )
            alerting = (
                None if once or as_json else _start_alerting(environment, resources, report_step)
            )
        resources.callback(prepare_shutdown, interrupts, progress)
        if final is None:
            return _show_and_audit(
                environment, seconds, interrupts, alerting, as_json=as_json, audited=audited
            )
        _print(final, as_json=as_json, keep=keep)
        left = (seconds or DEADLINE) - (time.monotonic() - started)
        if audited and not final.missing and left >= _AUDIT_SECONDS:
            audit_traffic(environment)
        if keep:
            _wait_for_signal(progress)
        return 1 if final.missing else 0


def _start_alerting(
    environment: DemoEnvironment, resources: ExitStack, report_step: Callable[[str], None]
) -> AlertStack | None:
    if missing_programs():
        report_step(f"alerts are disabled: {' and '.join(missing_programs())} not installed")
        return None
    report_step("starting Prometheus and Alertmanager")
    return resources.enter_context(run_alert_stack(environment))


def _show_and_audit(
    environment: DemoEnvironment,
    seconds: float | None,
    interrupts: SignalInterrupts,
    alerting: AlertStack | None,
    *,
    as_json: bool,
    audited: bool,
) -> int:
    code = 0
    try:
        _show(environment, seconds, alerting, as_json=as_json)
    except Interrupted as signal_received:
        if not audited or signal_received.number != signal.SIGINT:
            raise
        code = signal_received.exit_code
        interrupts.enable()
    if audited:
        sys.stderr.write("auditing the traffic of the demo; press Ctrl-C to skip\n")
        audit_traffic(environment)
    return code


def _show(
    environment: DemoEnvironment,
    seconds: float | None,
    alerting: AlertStack | None,
    *,
    as_json: bool,
) -> None:
    console = Console()
    if as_json:
        write_json(environment, seconds)
    elif console.is_terminal:
        show_live(environment, console, seconds, alerting)
    else:
        write_lines(environment, console, seconds, alerting)


def _print(final: FinalFigures, *, as_json: bool, keep: bool) -> None:
    if as_json:
        json_line(final.figures)
    else:
        title = Text("mm2slo demo: all records are replicated", style="bold")
        if final.missing:
            title = Text("mm2slo demo: incomplete", style="bold red")
        # Without --keep, the addresses are about to close.
        footer = address_lines(final.figures) if keep else []
        Console().print(screen(final.figures, title, footer))
    for what in final.missing:
        sys.stderr.write(f"missing: {what}\n")


def _wait_for_signal(progress: Console) -> None:
    """Wait for a signal."""
    progress.print("everything keeps running; press Ctrl-C to exit")
    with suppress(Interrupted):
        wait_for_signal()
