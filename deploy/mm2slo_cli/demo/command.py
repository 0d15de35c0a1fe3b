"""What `mm2slo demo` does from the first process to the last."""

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

from mm2slo_cli.demo.census import census
from mm2slo_cli.demo.leaving import leave
from mm2slo_cli.demo.live import json_line, watch, write_json, write_lines
from mm2slo_cli.demo.monitored import missing, monitored
from mm2slo_cli.demo.playing import play, refuse
from mm2slo_cli.demo.reported import reported
from mm2slo_cli.demo.settle import DEADLINE, settle
from mm2slo_cli.demo.stage import staged
from mm2slo_cli.demo.view import address_lines, screen
from mm2slo_cli.ending import Told, told_by_signals
from mm2slo_cli.lab_terminal import steps
from mm2slo_core.errors import UserError
from mm2slo_kafka.errors import KafkaOperationError
from mm2slo_lab import Lab

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_cli.demo.monitored import Monitored
    from mm2slo_cli.demo.settle import Settled
    from mm2slo_cli.demo.stage import Stage
    from mm2slo_cli.ending import Ending


_CENSUS_SECONDS: Final = 30.0
"""What an audit of the traffic may take; with --once it is left out when less time is left."""


def run(
    seconds: float | None,
    *,
    once: bool,
    as_json: bool,
    keep: bool = False,
    audited: bool = True,
    scenario: str | None = None,
) -> None:
    """Start everything, show it, audit it, and end everything.

    Without *once* the figures are shown for *seconds* or until told to end: SIGTERM and SIGHUP
    are a plain end (0), Ctrl-C is 130. With *once* they are printed when whole, for which
    *seconds* is the deadline: exit code 0, or 1 when something is missing; *keep* then leaves
    all running until a signal. *audited*: the traffic is audited at the end, which changes no
    exit code, unless JSON is asked for, time is short, or SIGTERM or SIGHUP ended the demo; a
    second Ctrl-C skips it. The report service runs as well where its extra is installed, unless
    all ends at once; so do Prometheus and Alertmanager, unless with *once* or JSON. A *scenario*
    is played instead; where nobody watches, its end is the demo's. Raises UserError for what
    cannot be started.
    """
    if scenario is not None:
        refuse(scenario, once=once, as_json=as_json, keep=keep)
    if keep and not once:
        raise UserError("--keep goes with --once: without it the demo stays up anyway")
    code = 0
    with told_by_signals() as ending:
        try:
            if scenario is None:
                code = _play(
                    ending, seconds, once=once, as_json=as_json, keep=keep, audited=audited
                )
            else:
                play(scenario, ending)
        except Told as told:
            ended_as_asked = not once and told.number != signal.SIGINT
            code = 0 if ended_as_asked else told.exit_code
        except BrokenPipeError:
            # The reader is gone, as in `| head`; Python would complain at its last flush.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 1
        except KafkaOperationError as problem:
            raise UserError(str(problem)) from None
    if code:
        raise typer.Exit(code)


def _play(
    ending: Ending,
    seconds: float | None,
    *,
    once: bool,
    as_json: bool,
    keep: bool,
    audited: bool,
) -> int:
    """Everything from the first process to the last; the exit code."""
    # Progress goes to stderr: it never mixes with what was asked for.
    progress = Console(stderr=True)
    audited = audited and not as_json
    started = time.monotonic()
    with ExitStack() as everything:
        with steps(progress, "starting the demo") as tell:
            lab = everything.enter_context(Lab.start(progress=tell))
            stage = everything.enter_context(staged(lab, tell))
            if keep or not once:
                tell("starting the report service")
                everything.enter_context(reported(stage))
            settled = settle(stage, seconds or DEADLINE, tell) if once else None
            watched = None if once or as_json else _watched(stage, everything, tell)
        everything.callback(leave, ending, progress)
        if settled is None:
            return _show_and_audit(
                stage, seconds, ending, watched, as_json=as_json, audited=audited
            )
        _print(settled, as_json=as_json, keep=keep)
        left = (seconds or DEADLINE) - (time.monotonic() - started)
        if audited and not settled.missing and left >= _CENSUS_SECONDS:
            census(stage)
        if keep:
            _stay(progress)
        return 1 if settled.missing else 0


def _watched(stage: Stage, everything: ExitStack, tell: Callable[[str], None]) -> Monitored | None:
    if missing():
        tell(f"going without alerts: {' and '.join(missing())} not installed")
        return None
    tell("starting Prometheus and Alertmanager")
    return everything.enter_context(monitored(stage))


def _show_and_audit(
    stage: Stage,
    seconds: float | None,
    ending: Ending,
    watched: Monitored | None,
    *,
    as_json: bool,
    audited: bool,
) -> int:
    code = 0
    try:
        _show(stage, seconds, watched, as_json=as_json)
    except Told as told:
        if not audited or told.number != signal.SIGINT:
            raise
        code = told.exit_code
        ending.again()
    if audited:
        sys.stderr.write("auditing the traffic of this demo; Ctrl-C skips it\n")
        census(stage)
    return code


def _show(stage: Stage, seconds: float | None, watched: Monitored | None, *, as_json: bool) -> None:
    console = Console()
    if as_json:
        write_json(stage, seconds)
    elif console.is_terminal:
        watch(stage, console, seconds, watched)
    else:
        write_lines(stage, console, seconds, watched)


def _print(settled: Settled, *, as_json: bool, keep: bool) -> None:
    if as_json:
        json_line(settled.figures)
    else:
        title = Text("mm2slo demo: all traffic was copied, at rest", style="bold")
        if settled.missing:
            title = Text("mm2slo demo: not whole", style="bold red")
        # An address that is gone in a moment would only mislead.
        footer = address_lines(settled.figures) if keep else []
        Console().print(screen(settled.figures, title, footer))
    for what in settled.missing:
        sys.stderr.write(f"missing: {what}\n")


def _stay(progress: Console) -> None:
    """Wait for the signal that ends everything."""
    progress.print("all stays up; Ctrl-C ends everything")
    with suppress(Told):
        while True:
            signal.pause()
