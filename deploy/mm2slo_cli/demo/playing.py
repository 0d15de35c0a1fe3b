"""The demo of one fault: starts what it needs, plays it, and ends everything."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from rich.console import Console

from mm2slo_cli.demo.keys import Keys
from mm2slo_cli.demo.leaving import leave
from mm2slo_cli.demo.monitored import missing, monitored
from mm2slo_cli.demo.reported import reported
from mm2slo_cli.demo.scenario import stop_mirror
from mm2slo_cli.demo.stage import staged
from mm2slo_cli.lab_terminal import steps
from mm2slo_core.errors import UserError
from mm2slo_lab import Lab

if TYPE_CHECKING:
    from mm2slo_cli.ending import Ending


SCENARIOS: Final = {"stop-mirror": stop_mirror}
_LOOK: Final = 3_600.0
"""Seconds for which a key is waited at a time."""


def refuse(scenario: str, *, once: bool, as_json: bool, keep: bool) -> None:
    """Raise UserError for a name or an option that means nothing, and for what is not installed."""
    if scenario not in SCENARIOS:
        raise UserError(f"{scenario!r} is no scenario: expected {', '.join(SCENARIOS)}")
    for option, given in {"--once": once, "--json": as_json, "--keep": keep}.items():
        if given:
            raise UserError(f"--scenario plays by itself: leave out {option}")
    if missing():
        raise UserError(
            f"the scenario needs {' and '.join(missing())}; on Debian: apt-get install prometheus"
            " prometheus-alertmanager"
        )


def play(scenario: str, ending: Ending) -> None:
    """Everything from the first process to the last.

    Where a person watches, the page stays up until told to end.
    """
    progress = Console(stderr=True)
    with ExitStack() as everything:
        with steps(progress, "starting the demo") as tell:
            lab = everything.enter_context(Lab.start(progress=tell))
            stage = everything.enter_context(staged(lab, tell))
            tell("starting the report service")
            everything.enter_context(reported(stage))
            tell("starting Prometheus and Alertmanager")
            watched = everything.enter_context(monitored(stage))
        everything.callback(leave, ending, progress)
        console = Console()
        SCENARIOS[scenario](stage, watched, console)
        if console.is_terminal and "report" in stage.beside:
            _stay(console)


def _stay(console: Console) -> None:
    """Leave the page up for the person who watches."""
    with Keys() as keys:
        if not keys.there:
            return
        console.print("\nThe page stays up; Ctrl-C or q ends everything.")
        while keys.wait(_LOOK) != "q":
            pass
