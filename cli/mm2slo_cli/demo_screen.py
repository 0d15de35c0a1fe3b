"""What the demo prints: a live table of its figures, lines of text, or lines of JSON.

The figures come from the caller; nothing here reads a cluster.
"""

import json
import os
import select
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mm2slo_cli.demo_environment import DemoEnvironment
from mm2slo_cli.demo_figures import DemoFigures, DemoFlowFigures, LatencyPercentiles
from mm2slo_cli.demo_services import AlertStack
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_exporter.web.flow_overview import duration

_REFRESH: Final = 0.5
_LINES_EVERY: Final = 5.0
_JSON_EVERY: Final = 1.0
"""Seconds."""


def show_live(
    environment: DemoEnvironment,
    console: Console,
    seconds: float | None,
    alerting: AlertStack | None = None,
) -> None:
    """Show the table and a status line until *seconds* have passed or q is pressed.

    Each new Slack message of *alerting* is a line above the table.
    """
    messages = _SlackLines(console, alerting)
    start = time.monotonic()
    _print_addresses(environment, console)
    with Keyboard() as keys, Live(console=console, auto_refresh=False) as live:
        while True:
            running = time.monotonic() - start
            messages.print_new()
            table = figures_table(environment.figures())
            status = status_line(running, mm2_paused=environment.mm2_paused)
            live.update(Group(table, status), refresh=True)
            if seconds is not None and running >= seconds:
                return
            match keys.wait(_pause(_REFRESH, running, seconds)):
                case "q":
                    return
                case "m":
                    environment.toggle_mm2()


def write_lines(
    environment: DemoEnvironment,
    console: Console,
    seconds: float | None,
    alerting: AlertStack | None = None,
) -> None:
    """Print a line per flow every five seconds until *seconds* have passed.

    Each new Slack message of *alerting* is a line as well.
    """
    _print_addresses(environment, console)
    console.print("press Ctrl-C to exit")
    messages = _SlackLines(console, alerting)

    def write(figures: DemoFigures) -> None:
        for flow in figures.flows:
            console.print(plain_line(flow), soft_wrap=True, highlight=False, markup=False)
        messages.print_new()

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


class _SlackLines:
    """Prints the newest Slack message of *alerting* once."""

    def __init__(self, console: Console, alerting: AlertStack | None) -> None:
        self._console = console
        self._alerting = alerting
        self._last: str | None = None

    def print_new(self) -> None:
        message = None if self._alerting is None else self._alerting.newest_message
        if message != self._last:
            self._last = message
            self._console.print(f"Slack: {message}", soft_wrap=True, highlight=False, markup=False)


def _print_addresses(environment: DemoEnvironment, console: Console) -> None:
    for line in address_lines(environment.figures()):
        console.print(line, soft_wrap=True)


WIDTH: Final = 80

_COLOURS: Final = {
    FlowStateName.RUNNING: "green",
    FlowStateName.IDLE: "cyan",
    FlowStateName.STOPPED: "red",
    FlowStateName.UNKNOWN: "yellow",
}

_SILENT: Final = 5.0
"""Seconds without a probe after which its absence is shown: five intervals of the lab."""
_NO_PAGE: Final = "not installed: pip install '.[report]'"
_NO_DATA: Final = Text("no data yet", style="dim")


def figures_table(figures: DemoFigures, title: Text | None = None) -> Table:
    """Return a table of 80 columns: a row per measure, a column per flow."""
    table = Table(title=title, title_justify="left", box=box.ROUNDED, width=WIDTH)
    table.add_column("Flow", style="dim", no_wrap=True)
    for flow in figures.flows:
        table.add_column(flow.flow.label, ratio=1)
    for measure, cell in _ROWS.items():
        table.add_row(measure, *(cell(flow) for flow in figures.flows))
    return table


def status_line(running: float, *, mm2_paused: bool) -> Text:
    """Return the keys of the live view and how long it has been running."""
    mirror = "resume" if mm2_paused else "pause"
    return Text(
        f"m to {mirror} MirrorMaker 2, Ctrl-C or q to exit; running for {duration(running)}", "dim"
    )


def plain_line(flow: DemoFlowFigures) -> str:
    """Return a flow as one line of text."""
    records = "?" if flow.lag_records is None else f"{flow.lag_records:,}"
    seconds = "?" if flow.lag_seconds is None else duration(flow.lag_seconds)
    canary = flow.recent.canary
    p50 = "?" if canary is None else _latency(canary.p50)
    return (
        f"{flow.flow.label:<8} {flow.state.value:<8} lag {records} records, {seconds},"
        f" canary {p50}, groups ready {flow.groups_ready}/{len(flow.groups)}"
    )


def address_lines(figures: DemoFigures) -> list[Text]:
    """Return the URLs of status page, shipped logs, exporter, and alerts if Prometheus runs."""
    exporter = Text.assemble(("Exporter ", "dim"), f"{figures.urls['page']}  /metrics")
    alerts = figures.urls.get("alerts")
    if alerts is None:
        exporter.append("  /readyz")
    else:
        exporter.append("  Alerts ", style="dim").append(alerts)
    page = Text.assemble(("Page     ", "dim"), figures.urls.get("report", _NO_PAGE))
    if "logs" in figures.urls:
        page.append("  Logs ", style="dim").append(figures.urls["logs"])
    return [page, exporter]


def _state(flow: DemoFlowFigures) -> Text:
    colour = _COLOURS[flow.state]
    return Text.assemble(
        (f" {flow.state.value.upper()} ", f"bold reverse {colour}"),
        (f" {_spaced(flow.reason)}", colour),
    )


def _lag(flow: DemoFlowFigures) -> Text:
    if flow.lag_records is None or flow.lag_seconds is None:
        return _NO_DATA
    style = "" if flow.is_alive else "bold red"
    unit = "record" if flow.lag_records == 1 else "records"
    return Text(f"{flow.lag_records:,} {unit}, {duration(flow.lag_seconds)}", style=style)


def _throughput(flow: DemoFlowFigures) -> Text:
    rate = flow.recent.throughput
    return _NO_DATA if rate is None else Text(f"{rate.source:,.0f}/s in, {rate.target:,.0f}/s out")


def _canary(flow: DemoFlowFigures) -> Text:
    return _arrivals(flow.recent.canary, flow.canary_age)


def _heartbeat(flow: DemoFlowFigures) -> Text:
    if flow.heartbeats_disabled:
        return Text("disabled", style="dim")
    return _arrivals(flow.recent.heartbeat, flow.heartbeat_age)


def _arrivals(percentiles: LatencyPercentiles | None, age: float | None) -> Text:
    """Percentiles while probes arrive, else the time since the last one."""
    if age is not None and age >= _SILENT:
        return Text(f"none for {duration(age)}", style="bold red")
    if percentiles is None:
        return _NO_DATA
    return Text(f"p50 {_latency(percentiles.p50)}, p99 {_latency(percentiles.p99)}")


def _latency(seconds: float | None) -> str:
    if seconds is None:
        return "over 300 s"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else duration(seconds)


def _stalled(flow: DemoFlowFigures) -> Text:
    if not flow.partitions:
        return _NO_DATA
    text = f"{len(flow.stalled)} of {flow.partitions} partitions"
    return Text(text, style="bold red" if flow.stalled else "")


def _retention(flow: DemoFlowFigures) -> Text:
    headroom = flow.headroom
    if headroom is None:
        return _NO_DATA
    if headroom.seconds is None:
        return Text(headroom.limit.value)
    return Text(f"{duration(headroom.seconds)} left ({headroom.limit.value})")


def _failover(flow: DemoFlowFigures) -> Text:
    """Number of ready groups, and why the others are blocked."""
    if not flow.groups:
        waits = ", ".join(flow.waiting_for)
        return Text(f"waiting for {waits or 'checkpoints'}", style="dim")
    total, ready = len(flow.groups), flow.groups_ready
    cell = Text(f"{ready}/{total} ready", style="green" if ready == total else "red")
    for name, group in flow.groups.items():
        if group.blocked:
            cell.append(f"\n{name} blocked: {', '.join(map(_spaced, group.blocked))}")
    return cell


def _redelivery(flow: DemoFlowFigures) -> Text:
    """Records that each group would read again after a failover."""
    lines = []
    for name, group in flow.groups.items():
        lower, upper = group.redelivery_lower, group.redelivery_upper
        if lower is None or upper is None:
            records = "unknown"
        else:
            records = f"{upper:,}" if lower == upper else f"{lower:,} to {upper:,}"
        lines.append(f"{records} for {name}")
    if not lines:
        return _NO_DATA
    return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")


def _unreplicated(flow: DemoFlowFigures) -> Text:
    """Records that the group with the most would miss if the source never came back."""
    known = [group for group in flow.groups.values() if group.unreplicated_records is not None]
    if not flow.groups:
        return _NO_DATA
    if len(known) < len(flow.groups):
        return Text("unknown")
    worst = max(known, key=lambda group: group.unreplicated_records or 0)
    age = f" ({duration(worst.unreplicated_seconds)})" if worst.unreplicated_seconds else ""
    return Text(f"{worst.unreplicated_records:,}{age}")


_ROWS: Final[dict[str, Callable[[DemoFlowFigures], Text]]] = {
    "State": _state,
    "Lag": _lag,
    "Rate": _throughput,
    "Canary": _canary,
    "Heartbeat": _heartbeat,
    "Stalled": _stalled,
    "Retention": _retention,
    "Failover": _failover,
    "Re-reads": _redelivery,
    "Unreplicated": _unreplicated,
}


def _spaced(label: str) -> str:
    return label.replace("_", " ")


class Keyboard:
    """Reads single keys without Enter; none if standard input is not a terminal.

    Ctrl-C is still a signal.
    """

    def __init__(self) -> None:
        self._file: int | None = None
        self._saved: Any = None  # opaque state of termios

    def __enter__(self) -> Self:
        if sys.stdin is None or not sys.stdin.isatty():
            return self
        # Not available on Windows.
        import termios
        import tty

        self._file = sys.stdin.fileno()
        self._saved = termios.tcgetattr(self._file)
        tty.setcbreak(self._file)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._saved is not None:
            import termios

            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._saved)

    @property
    def is_available(self) -> bool:
        """Whether standard input is a terminal."""
        return self._file is not None

    def wait(self, seconds: float) -> str:
        """Return the next key within *seconds*, or ""."""
        if self._file is None:
            time.sleep(seconds)
            return ""
        ready, _, _ = select.select([self._file], [], [], seconds)
        if not ready:
            return ""
        pressed = os.read(self._file, 1).decode(errors="replace")
        if not pressed:  # the terminal was closed
            self._file = None
        return pressed.lower()
