"""The demo of one fault: starts what it needs, plays it, and ends everything."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from rich.console import Console

from mm2slo_cli.demo.leaving import leave
from mm2slo_cli.demo.monitored import missing, monitored
from mm2slo_cli.demo.scenario import stop_mirror
from mm2slo_cli.demo.stage import staged
from mm2slo_cli.lab_terminal import steps
from mm2slo_core.errors import UserError
from mm2slo_lab import Lab

if TYPE_CHECKING:
    from mm2slo_cli.ending import Ending


SCENARIOS: Final = {"stop-mirror": stop_mirror}


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
    """Everything from the first process to the last."""
    progress = Console(stderr=True)
    with ExitStack() as everything:
        with steps(progress, "starting the demo") as tell:
            lab = everything.enter_context(Lab.start(progress=tell))
            stage = everything.enter_context(staged(lab, tell))
            tell("starting Prometheus and Alertmanager")
            watched = everything.enter_context(monitored(stage))
        everything.callback(leave, ending, progress)
        SCENARIOS[scenario](stage, watched, Console())
