"""The live view, and what takes its place where nobody watches: lines, or JSON lines."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from mm2slo_cli.demo.keys import Keys
from mm2slo_cli.demo.view import address_lines, key_line, plain_line, screen
from mm2slo_exporter.web.page import duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console, RenderableType

    from mm2slo_cli.demo.figures import DemoFigures
    from mm2slo_cli.demo.monitored import Monitored
    from mm2slo_cli.demo.stage import Stage

_REFRESH = 0.5
_LINES_EVERY = 5.0
_JSON_EVERY = 1.0


def watch(
    stage: Stage, console: Console, seconds: float | None, watched: Monitored | None = None
) -> None:
    """Show the figures in place until *seconds* are over or q is pressed.

    The newest message that *watched* sent to Slack stands in the title.
    """
    start = time.monotonic()
    with Keys() as keys, Live(console=console, auto_refresh=False) as live:
        while True:
            running = time.monotonic() - start
            live.update(_frame(stage, running, watched), refresh=True)
            if seconds is not None and running >= seconds:
                return
            match keys.wait(_pause(_REFRESH, running, seconds)):
                case "q":
                    return
                case "m":
                    stage.toggle_mm2()
                case "t":
                    stage.traffic.toggle()


def _frame(stage: Stage, running: float, watched: Monitored | None) -> RenderableType:
    title = Text("mm2slo demo", "bold", no_wrap=True, overflow="ellipsis")
    message = None if watched is None else watched.newest
    if message is None:
        title.append(f"  two clusters and MirrorMaker 2, for {duration(running)}", "not bold dim")
    else:
        title.append("  Slack  ", "not bold dim").append(message)
    keys = key_line(traffic=stage.traffic.flowing, mm2_paused=stage.mm2_paused)
    figures = stage.figures()
    return screen(figures, title, [*address_lines(figures), keys])


def write_lines(
    stage: Stage, console: Console, seconds: float | None, watched: Monitored | None = None
) -> None:
    """Print one line for each flow every five seconds until *seconds* are over.

    Each new message that *watched* sent to Slack is a line as well.
    """
    for line in address_lines(stage.figures()):
        console.print(line, soft_wrap=True)
    console.print("Ctrl-C ends everything")
    told: str | None = None

    def write(figures: DemoFigures) -> None:
        for flow in figures.flows:
            console.print(plain_line(flow), soft_wrap=True, highlight=False, markup=False)
        nonlocal told
        message = None if watched is None else watched.newest
        if message != told:
            told = message
            console.print(f"Slack: {message}", soft_wrap=True, highlight=False, markup=False)

    _repeat(stage, write, _LINES_EVERY, seconds)


def write_json(stage: Stage, seconds: float | None) -> None:
    """Write one JSON object per line and second until *seconds* are over."""
    _repeat(stage, json_line, _JSON_EVERY, seconds)


def json_line(figures: DemoFigures) -> None:
    """Write the figures as one line of JSON."""
    sys.stdout.write(json.dumps(figures.to_json()) + "\n")
    sys.stdout.flush()


def _repeat(
    stage: Stage, write: Callable[[DemoFigures], None], every: float, seconds: float | None
) -> None:
    start = time.monotonic()
    while True:
        write(stage.figures())
        running = time.monotonic() - start
        if seconds is not None and running >= seconds:
            return
        time.sleep(_pause(every, running, seconds))


def _pause(every: float, running: float, seconds: float | None) -> float:
    return every if seconds is None else min(every, max(seconds - running, 0.0))
