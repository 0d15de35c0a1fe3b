"""Runs the scenarios of `mm2slo demo --scenario`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from rich.console import Console

from mm2slo_cli.demo.alert_stack import missing_programs, run_alert_stack
from mm2slo_cli.demo.demo_environment import start_environment
from mm2slo_cli.demo.keyboard import Keyboard
from mm2slo_cli.demo.report_page import serve_report_page
from mm2slo_cli.demo.shutdown import prepare_shutdown
from mm2slo_cli.demo.stop_mirror import stop_mirror
from mm2slo_cli.lab_terminal import show_steps
from mm2slo_core.user_errors import UserError
from mm2slo_lab import Lab

if TYPE_CHECKING:
    from mm2slo_cli.signals import SignalInterrupts


SCENARIOS: Final = {"stop-mirror": stop_mirror}
_KEY_WAIT: Final = 3_600.0
"""Seconds per wait for a key."""


def check_options(scenario: str, *, once: bool, as_json: bool, keep: bool) -> None:
    """Raise UserError for an unknown scenario, conflicting options or missing programs."""
    if scenario not in SCENARIOS:
        raise UserError(f"unknown scenario {scenario!r}; expected {', '.join(SCENARIOS)}")
    for option, given in {"--once": once, "--json": as_json, "--keep": keep}.items():
        if given:
            raise UserError(f"--scenario cannot be combined with {option}")
    if missing := missing_programs():
        raise UserError(
            f"the scenario needs {' and '.join(missing)}; on Debian: apt-get install prometheus"
            " prometheus-alertmanager"
        )


def run_scenario(scenario: str, interrupts: SignalInterrupts) -> None:
    """Start everything, run the scenario, and shut down.

    On a terminal, the status page stays up until q or a signal.
    """
    progress = Console(stderr=True)
    with ExitStack() as resources:
        with show_steps(progress, "starting the demo") as report_step:
            lab = resources.enter_context(Lab.start(progress=report_step))
            environment = resources.enter_context(start_environment(lab, report_step))
            report_step("starting the report service")
            resources.enter_context(serve_report_page(environment))
            report_step("starting Prometheus and Alertmanager")
            alerting = resources.enter_context(run_alert_stack(environment))
        resources.callback(prepare_shutdown, interrupts, progress)
        console = Console()
        SCENARIOS[scenario](environment, alerting, console)
        if console.is_terminal and "report" in environment.extra_urls:
            _wait_for_exit(console)


def _wait_for_exit(console: Console) -> None:
    """Keep the status page up until q or a signal."""
    with Keyboard() as keys:
        if not keys.is_available:
            return
        console.print("\nThe page stays up; press q or Ctrl-C to exit.")
        while keys.wait(_KEY_WAIT) != "q":
            pass
