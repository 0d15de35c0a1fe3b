"""The live view of the demo, and its output as text or JSON lines."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from mm2slo_cli.demo.demo_screen import address_lines, key_line, plain_line, screen
from mm2slo_cli.demo.keyboard import Keyboard
from mm2slo_exporter.web.page import duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console, RenderableType

    from mm2slo_cli.demo.alert_stack import AlertStack
    from mm2slo_cli.demo.demo_environment import DemoEnvironment
    from mm2slo_cli.demo.demo_figures import DemoFigures

_REFRESH = 0.5
_LINES_EVERY = 5.0
_JSON_EVERY = 1.0


def show_live(
    environment: DemoEnvironment,
    console: Console,
    seconds: float | None,
    alerting: AlertStack | None = None,
) -> None:
    """Show live figures until *seconds* have passed or q is pressed.

    The title shows the newest Slack message of *alerting*.
    """
    start = time.monotonic()
    with Keyboard() as keys, Live(console=console, auto_refresh=False) as live:
        while True:
            running = time.monotonic() - start
            live.update(_frame(environment, running, alerting), refresh=True)
            if seconds is not None and running >= seconds:
                return
            match keys.wait(_pause(_REFRESH, running, seconds)):
                case "q":
                    return
                case "m":
                    environment.toggle_mm2()
                case "t":
                    environment.traffic.toggle()


def _frame(
    environment: DemoEnvironment, running: float, alerting: AlertStack | None
) -> RenderableType:
    title = Text("mm2slo demo", "bold", no_wrap=True, overflow="ellipsis")
    message = None if alerting is None else alerting.newest_message
    if message is None:
        title.append(f"  two clusters and MirrorMaker 2, for {duration(running)}", "not bold dim")
    else:
        title.append("  Slack  ", "not bold dim").append(message)
    keys = key_line(traffic=environment.traffic.is_writing, mm2_paused=environment.mm2_paused)
    figures = environment.figures()
    return screen(figures, title, [*address_lines(figures), keys])


def write_lines(
    environment: DemoEnvironment,
    console: Console,
    seconds: float | None,
    alerting: AlertStack | None = None,
) -> None:
    """Print a line per flow every five seconds until *seconds* have passed.

    Each new Slack message of *alerting* is a line as well.
    """
    for line in address_lines(environment.figures()):
        console.print(line, soft_wrap=True)
    console.print("press Ctrl-C to exit")
    last_message: str | None = None

    def write(figures: DemoFigures) -> None:
        for flow in figures.flows:
            console.print(plain_line(flow), soft_wrap=True, highlight=False, markup=False)
        nonlocal last_message
        message = None if alerting is None else alerting.newest_message
        if message != last_message:
            last_message = message
            console.print(f"Slack: {message}", soft_wrap=True, highlight=False, markup=False)

    _repeat(environment, write, _LINES_EVERY, seconds)


def write_json(environment: DemoEnvironment, seconds: float | None) -> None:
    """Print a line of JSON per second until *seconds* have passed."""
    _repeat(environment, json_line, _JSON_EVERY, seconds)


def json_line(figures: DemoFigures) -> None:
    """Print the figures as one line of JSON."""
    sys.stdout.write(json.dumps(figures.to_json()) + "\n")
    sys.stdout.flush()


def _repeat(
    environment: DemoEnvironment,
    write: Callable[[DemoFigures], None],
    every: float,
    seconds: float | None,
) -> None:
    start = time.monotonic()
    while True:
        write(environment.figures())
        running = time.monotonic() - start
        if seconds is not None and running >= seconds:
            return
        time.sleep(_pause(every, running, seconds))


def _pause(every: float, running: float, seconds: float | None) -> float:
    return every if seconds is None else min(every, max(seconds - running, 0.0))
