"""The live view of the demo, and its output as text or JSON lines.

A panel per flow, 80 columns by 24 rows. The figures come from the caller; nothing here reads a
cluster.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.indicators.replication_lag import Headroom
from mm2slo_exporter.web.flow_overview import duration

if TYPE_CHECKING:
    from mm2slo_cli.demo_environment import DemoEnvironment
    from mm2slo_cli.demo_figures import DemoFigures, FlowFigures, GroupFigures, LatencyPercentiles
    from mm2slo_cli.demo_services import AlertStack


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


WIDTH = 80

_COLOURS = {
    FlowStateName.RUNNING: "green",
    FlowStateName.IDLE: "cyan",
    FlowStateName.STOPPED: "red",
    FlowStateName.UNKNOWN: "yellow",
}

_SILENT = 5.0
"""Seconds without a probe after which its absence is shown: five intervals of the lab."""
_NO_PAGE = "not installed: pip install '.[report]'"
_NO_DATA = Text("no data yet", style="dim")


def screen(figures: DemoFigures, title: Text, footer: Iterable[Text]) -> RenderableType:
    """Return the screen: title, a panel per flow, footer."""
    return Group(
        title,
        *(flow_panel(flow) for flow in figures.flows),
        *footer,
    )


def flow_panel(flow: FlowFigures) -> Panel:
    """Return the panel of a flow: state in the frame, figures inside."""
    colour = _COLOURS[flow.state]
    title = Text.assemble(
        (f" {flow.flow.label} ", "bold"),
        (f" {flow.state.value.upper()} ", f"bold reverse {colour}"),
        (f" {_spaced(flow.reason)} ", colour),
    )
    return Panel(
        Group(_grid(flow), _groups(flow)),
        title=title,
        title_align="left",
        border_style=colour,
        box=box.ROUNDED,
        width=WIDTH,
    )


def plain_line(flow: FlowFigures) -> str:
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


def key_line(*, traffic: bool, mm2_paused: bool) -> Text:
    """Return the key bindings of the live view."""
    return Text.assemble(
        ("Try   ", "dim"),
        ("m", "bold"),
        f" {'resume' if mm2_paused else 'pause'} MirrorMaker 2   ",
        ("t", "bold"),
        f" {'pause' if traffic else 'start'} traffic   ",
        ("Ctrl-C", "bold"),
        " or ",
        ("q", "bold"),
        " to exit",
    )


def _grid(flow: FlowFigures) -> Table:
    grid = _table(11, 26, 10, 26)
    grid.add_row(_label("Lag"), _lag(flow), _label("Rate"), _throughput(flow))
    canary = _arrivals(flow.recent.canary, flow.canary_age)
    heartbeat = _arrivals(flow.recent.heartbeat, flow.heartbeat_age)
    if flow.heartbeats_disabled:
        heartbeat = Text("disabled", style="dim")
    grid.add_row(_label("Canary"), canary, _label("Heartbeat"), heartbeat)
    grid.add_row(_label("Stalled"), _stalled(flow), _label("Retention"), _headroom(flow.headroom))
    return grid


def _groups(flow: FlowFigures) -> Table:
    total, ready = len(flow.groups), flow.groups_ready
    if not flow.groups:
        waiting = _table(11, 64)
        waiting.add_row(_label("Failover"), _waiting(flow))
        return waiting
    table = _table(11, 20, 43)
    count = Text(f"{ready}/{total} ready", style="green" if ready == total else "red")
    heads = [_label("Failover"), count] + [Text()] * total
    for head, (name, group) in zip(heads, flow.groups.items(), strict=False):
        table.add_row(head, *_group(name, group))
    return table


def _table(*widths: int) -> Table:
    """A table with fixed column widths, so that the layout is stable."""
    table = Table.grid(padding=(0, 1))
    for width in widths:
        table.add_column(width=width, no_wrap=True, overflow="ellipsis")
    return table


def _group(name: str, group: GroupFigures) -> tuple[Text, Text]:
    mark = ("✔ ", "green") if group.ready else ("✘ ", "bold red")
    detail = Text(f"re-reads {_redelivery(group)}, {_unreplicated(group)}")
    if group.blocked:
        detail = Text(f"blocked: {', '.join(map(_spaced, group.blocked))}", style="red")
    return Text.assemble(mark, name), detail


def _redelivery(group: GroupFigures) -> str:
    lower, upper = group.redelivery_lower, group.redelivery_upper
    if lower is None or upper is None:
        return "unknown"
    if lower == upper:
        return f"{upper:,}"
    return f"{lower:,} to {upper:,}"


def _unreplicated(group: GroupFigures) -> str:
    """What would be missing on the target if the source never came back."""
    if group.unreplicated_records is None:
        return "unreplicated unknown"
    age = f" ({duration(group.unreplicated_seconds)})" if group.unreplicated_seconds else ""
    return f"{group.unreplicated_records:,}{age} unreplicated"


def _lag(flow: FlowFigures) -> Text:
    if flow.lag_records is None or flow.lag_seconds is None:
        return _NO_DATA
    style = "" if flow.is_alive else "bold red"
    unit = "record" if flow.lag_records == 1 else "records"
    return Text(f"{flow.lag_records:,} {unit}, {duration(flow.lag_seconds)}", style=style)


def _throughput(flow: FlowFigures) -> Text:
    rate = flow.recent.throughput
    return _NO_DATA if rate is None else Text(f"{rate.source:,.0f}/s in, {rate.target:,.0f}/s out")


def _arrivals(found: LatencyPercentiles | None, age: float | None) -> Text:
    """Percentiles while probes arrive, else the time since the last one."""
    if age is not None and age >= _SILENT:
        return Text(f"none for {duration(age)}", style="bold red")
    if found is None:
        return _NO_DATA
    return Text(f"p50 {_latency(found.p50)}, p99 {_latency(found.p99)}")


def _latency(seconds: float | None) -> str:
    if seconds is None:
        return "over 300 s"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else duration(seconds)


def _stalled(flow: FlowFigures) -> Text:
    if not flow.partitions:
        return _NO_DATA
    text = f"{len(flow.stalled)} of {flow.partitions} partitions"
    return Text(text, style="bold red" if flow.stalled else "")


def _headroom(headroom: Headroom | None) -> Text:
    if headroom is None:
        return _NO_DATA
    if headroom.seconds is None:
        return Text(headroom.limit.value)
    return Text(f"{duration(headroom.seconds)} left ({headroom.limit.value})")


def _waiting(flow: FlowFigures) -> Text:
    waits = ", ".join(flow.waiting_for)
    return Text(f"waiting for {waits}" if waits else "waiting for checkpoints", style="dim")


def _label(text: str) -> Text:
    return Text(text, style="dim")


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
