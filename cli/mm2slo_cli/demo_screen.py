"""What the demo prints: a live table of its figures, lines of text, or lines of JSON.

The figures come from the caller; nothing here reads a cluster.
"""

import json
import math
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mm2slo_cli.demo_environment import DemoEnvironment
from mm2slo_cli.demo_figures import DemoFigures, FlowFigures, LatencyPercentiles, spaced
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
    _print_addresses(environment, console)
    with single_keys() as read_key, Live(console=console, auto_refresh=False) as live:
        for running, pause in _rounds(_REFRESH, seconds):
            _print_slack_titles(console, alerting)
            table = figures_table(environment.figures())
            status = status_line(running, mm2_paused=environment.mm2_paused)
            live.update(Group(table, status), refresh=True)
            match read_key(pause):
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
    for _, pause in _rounds(_LINES_EVERY, seconds):
        for flow in environment.figures().flows:
            console.print(plain_line(flow), soft_wrap=True, highlight=False, markup=False)
        _print_slack_titles(console, alerting)
        time.sleep(pause)


def write_json(environment: DemoEnvironment, seconds: float | None) -> None:
    """Print a line of JSON per second until *seconds* have passed."""
    for _, pause in _rounds(_JSON_EVERY, seconds):
        json_line(environment.figures())
        time.sleep(pause)


def json_line(figures: DemoFigures) -> None:
    """Print the figures as one line of JSON."""
    sys.stdout.write(json.dumps(figures.to_json()) + "\n")
    sys.stdout.flush()


def _rounds(every: float, seconds: float | None) -> Iterator[tuple[float, float]]:
    """Yield seconds since the start and until the next output, the last one after *seconds*."""
    start = time.monotonic()
    left = math.inf
    while left > 0:
        running = time.monotonic() - start
        left = math.inf if seconds is None else seconds - running
        yield running, max(min(every, left), 0.0)


def _print_slack_titles(console: Console, alerting: AlertStack | None) -> None:
    for title in alerting.new_titles() if alerting else ():
        console.print(f"Slack: {title}", soft_wrap=True, highlight=False, markup=False)


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
        table.add_column(flow.report.flow.label, ratio=1)
    for measure, cell in _ROWS.items():
        table.add_row(measure, *(cell(flow) for flow in figures.flows))
    return table


def status_line(running: float, *, mm2_paused: bool) -> Text:
    """Return the keys of the live view and how long it has been running."""
    mirror = "resume" if mm2_paused else "pause"
    return Text(
        f"m to {mirror} MirrorMaker 2, Ctrl-C or q to exit; running for {duration(running)}", "dim"
    )


def plain_line(flow: FlowFigures) -> str:
    """Return a flow as one line of text."""
    report, lag, canary = flow.report, flow.lag, flow.recent.canary
    records = "?" if lag.records is None else f"{lag.records:,}"
    seconds = "?" if lag.seconds is None else duration(lag.seconds)
    p50 = "?" if canary is None else _latency(canary.p50)
    return (
        f"{report.flow.label:<8} {report.state.value:<8} lag {records} records, {seconds},"
        f" canary {p50}, groups ready {flow.groups_ready}/{len(report.groups)}"
    )


def address_lines(figures: DemoFigures) -> list[Text]:
    """Return the URLs of status page, shipped logs, exporter, and Prometheus if it runs."""
    exporter = Text.assemble(("Exporter ", "dim"), f"{figures.urls['page']}  /metrics")
    # Not its page of alerts, which has another path in Debian's package.
    prometheus = figures.urls.get("prometheus")
    if prometheus is None:
        exporter.append("  /readyz")
    else:
        exporter.append("  Prometheus ", style="dim").append(prometheus)
    page = Text.assemble(("Page     ", "dim"), figures.urls.get("report", _NO_PAGE))
    if "logs" in figures.urls:
        page.append("  Logs ", style="dim").append(figures.urls["logs"])
    return [page, exporter]


def _state(flow: FlowFigures) -> Text:
    colour = _COLOURS[flow.report.state]
    return Text.assemble(
        (f" {flow.report.state.value.upper()} ", f"bold reverse {colour}"),
        (f" {spaced(flow.report.state_reason)}", colour),
    )


def _lag(flow: FlowFigures) -> Text:
    records, seconds = flow.lag
    if records is None or seconds is None:
        return _NO_DATA
    style = "" if flow.is_alive else "bold red"
    unit = "record" if records == 1 else "records"
    return Text(f"{records:,} {unit}, {duration(seconds)}", style=style)


def _throughput(flow: FlowFigures) -> Text:
    rate = flow.recent.throughput
    return _NO_DATA if rate is None else Text(f"{rate.source:,.0f}/s in, {rate.target:,.0f}/s out")


def _canary(flow: FlowFigures) -> Text:
    arrived_at = flow.report.canary_arrived_at
    age = None if arrived_at is None else flow.report.at - arrived_at
    return _arrivals(flow.recent.canary, age)


def _heartbeat(flow: FlowFigures) -> Text:
    heartbeats = flow.report.heartbeats
    if flow.report.info.heartbeats_disabled and not heartbeats.present:
        return Text("disabled", style="dim")
    return _arrivals(flow.recent.heartbeat, heartbeats.age_seconds)


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


def _stalled(flow: FlowFigures) -> Text:
    if not flow.partitions:
        return _NO_DATA
    stalled = len(flow.report.stalled)
    text = f"{stalled} of {len(flow.partitions)} partitions"
    return Text(text, style="bold red" if stalled else "")


def _retention(flow: FlowFigures) -> Text:
    headroom = flow.headroom
    if headroom is None:
        return _NO_DATA
    if headroom.seconds is None:
        return Text(headroom.limit.value)
    return Text(f"{duration(headroom.seconds)} left ({headroom.limit.value})")


def _failover(flow: FlowFigures) -> Text:
    """Number of ready groups, and why the others are blocked."""
    groups = flow.report.groups
    if not groups:
        waits = ", ".join(flow.report.waiting_for)
        return Text(f"waiting for {waits or 'checkpoints'}", style="dim")
    total, ready = len(groups), flow.groups_ready
    cell = Text(f"{ready}/{total} ready", style="green" if ready == total else "red")
    for group in groups:
        if blocked := group.readiness.blocked:
            cell.append(
                f"\n{group.group} blocked: {', '.join(spaced(each.reason) for each in blocked)}"
            )
    return cell


def _redelivery(flow: FlowFigures) -> Text:
    """Records that each group would read again after a failover."""
    lines = []
    for group in flow.report.groups:
        lower, upper = group.readiness.redelivery_lower, group.readiness.redelivery_upper
        if lower is None or upper is None:
            records = "unknown"
        else:
            records = f"{upper:,}" if lower == upper else f"{lower:,} to {upper:,}"
        lines.append(f"{records} for {group.group}")
    if not lines:
        return _NO_DATA
    return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")


def _unreplicated(flow: FlowFigures) -> Text:
    """Records that the group with the most would miss if the source never came back."""
    if not flow.report.groups:
        return _NO_DATA
    lags = [group.unreplicated for group in flow.report.groups]
    if any(lag.records is None for lag in lags):
        return Text("unknown")
    most = max(lags, key=lambda lag: lag.records or 0)
    return Text(f"{most.records:,}{f' ({duration(most.seconds)})' if most.seconds else ''}")


_ROWS: Final[dict[str, Callable[[FlowFigures], Text]]] = {
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


@contextmanager
def single_keys() -> Iterator[Callable[[float], str]]:
    """Read keys without Enter: yields a function from a timeout in seconds to the key, or "".

    It never returns a key if standard input is not a terminal. Ctrl-C is still a signal.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        yield _no_key
        return
    # Not available on Windows.
    import termios
    import tty

    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    tty.setcbreak(file)
    try:
        yield partial(_read_key, file)
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


def _no_key(seconds: float) -> str:
    time.sleep(seconds)
    return ""


def _read_key(file: int, seconds: float) -> str:
    ready, _, _ = select.select([file], [], [], seconds)
    if not ready:
        return ""
    # A closed terminal is always ready and has no key.
    return os.read(file, 1).decode(errors="replace").lower() or _no_key(seconds)
