"""`mm2slo demo`: two clusters, MirrorMaker 2, traffic and the exporter in one terminal.

With `--scenario stop-mirror`, MirrorMaker 2 stops, alerts fire and resolve, and the report service
shows the incident. Otherwise the demo ends with an audit of its traffic.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import typer
from rich.console import Console
from rich.text import Text

from mm2slo_cli.alerts_preview import show_slack_message
from mm2slo_cli.demo_environment import (
    DEADLINE,
    DemoEnvironment,
    FinalFigures,
    prepare_shutdown,
    start_environment,
    wait_for_final_figures,
)
from mm2slo_cli.demo_screen import (
    address_lines,
    figures_table,
    json_line,
    show_live,
    single_keys,
    write_json,
    write_lines,
)
from mm2slo_cli.demo_services import (
    SCALE,
    AlertStack,
    missing_programs,
    run_alert_stack,
    serve_report_page,
    ship_logs,
)
from mm2slo_cli.service_process import (
    Interrupted,
    SignalInterrupts,
    interrupt_on_signals,
    wait_for_signal,
)
from mm2slo_cli.terminal_progress import show_steps
from mm2slo_core.reporting.step_counts import STEP_MS
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_lab.lab_topology import LabError
from mm2slo_lab.managed_process import request_json, wait_for
from mm2slo_lab.running_lab import Lab

_AUDIT_SECONDS: Final = 30.0
"""Expected duration of the audit; --once skips it when less time is left."""

_SCENARIO: Final = "stop-mirror"
_FLOWS: Final = 2
_HEALTHY: Final = f"count(mm2_flow_state{{state=~'running|idle'}} == 1) == {_FLOWS}"
_STOPPED: Final = 'count(mm2_flow_state{state="stopped"} == 1) > 0'
_FIRING: Final = 'count(ALERTS{alertname="MM2FlowStopped",alertstate="firing"}) > 0'
_TIMEOUT: Final = 120.0
_POLL: Final = 0.2


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
        _check_scenario(scenario, once=once, as_json=as_json, keep=keep)
    if keep and not once:
        raise UserError("--keep requires --once; without --once the demo keeps running anyway")
    code = 0
    with interrupt_on_signals() as interrupts:
        try:
            if scenario is None:
                audited = audited and not as_json
                code = _run(
                    interrupts, seconds, once=once, as_json=as_json, keep=keep, audited=audited
                )
            else:
                _run_scenario(interrupts)
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
    started = time.monotonic()
    final = alerting = None
    with ExitStack() as resources:
        with show_steps(progress, "starting the demo") as report_step:
            environment = _start(resources, report_step, with_page=keep or not once)
            if keep or not once:
                resources.enter_context(ship_logs(environment))
            if once:
                final = wait_for_final_figures(environment, seconds or DEADLINE, report_step)
            elif not as_json and missing_programs():
                report_step(
                    f"alerts are disabled: {' and '.join(missing_programs())} not installed"
                )
            elif not as_json:
                report_step("starting Prometheus and Alertmanager")
                alerting = resources.enter_context(run_alert_stack(environment))
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
            progress.print("everything keeps running; press Ctrl-C to exit")
            with suppress(Interrupted):
                wait_for_signal()
        return 1 if final.missing else 0


def _run_scenario(interrupts: SignalInterrupts) -> None:
    """Start everything, stop MirrorMaker 2 and start it again, and shut down.

    On a terminal, the status page stays up until q or a signal.
    """
    progress, console = Console(stderr=True), Console()
    with ExitStack() as resources:
        with show_steps(progress, "starting the demo") as report_step:
            environment = _start(resources, report_step, with_page=True)
            report_step("starting Prometheus and Alertmanager")
            alerting = resources.enter_context(run_alert_stack(environment))
        resources.callback(prepare_shutdown, interrupts, progress)
        stop_mirror(environment, alerting, console)
        if console.is_terminal and "report" in environment.extra_urls:
            _wait_for_exit(console)


def _start(
    resources: ExitStack, report_step: Callable[[str], None], *, with_page: bool
) -> DemoEnvironment:
    """Start lab, traffic and exporter, and *with_page* the report service."""
    lab = resources.enter_context(Lab.start(progress=report_step))
    environment = resources.enter_context(start_environment(lab, report_step))
    if with_page:
        report_step("starting the report service")
        resources.enter_context(serve_report_page(environment))
    return environment


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
    console = Console()
    try:
        if as_json:
            write_json(environment, seconds)
        elif console.is_terminal:
            show_live(environment, console, seconds, alerting)
        else:
            write_lines(environment, console, seconds, alerting)
    except Interrupted as signal_received:
        if not audited or signal_received.number != signal.SIGINT:
            raise
        code = signal_received.exit_code
        interrupts.enabled = True
    if audited:
        sys.stderr.write("auditing the traffic of the demo; press Ctrl-C to skip\n")
        audit_traffic(environment)
    return code


def _print(final: FinalFigures, *, as_json: bool, keep: bool) -> None:
    if as_json:
        json_line(final.figures)
    else:
        title = Text("mm2slo demo: all records are replicated", style="bold")
        if final.missing:
            title = Text("mm2slo demo: incomplete", style="bold red")
        # Without --keep, the addresses are about to close.
        footer = address_lines(final.figures) if keep else []
        Console().print(figures_table(final.figures, title), *footer, sep="\n")
    for what in final.missing:
        sys.stderr.write(f"missing: {what}\n")


def audit_traffic(environment: DemoEnvironment) -> None:
    """Stop the traffic, audit all of it, and print the report.

    A failure (no Maven repository, extra `audit` not installed) is one line on stderr and does not
    fail the demo.
    """
    try:
        environment.traffic.finish()
        # Imported late: Spark is an extra, takes seconds to import, and is needed only at the end.
        from mm2slo_audit.audit_options import AuditOptions, TimeSpan
        from mm2slo_audit.audit_run import audit
        from mm2slo_audit.report.terminal_report import print_report
        from mm2slo_audit.spark.spark_properties import SparkOptions
        from mm2slo_cli.audit import ResultLocations, open_ports

        folder = environment.lab.runtime.root / "audit"
        folder.mkdir(exist_ok=True)
        locations = ResultLocations(str(folder / "mm2slo.db"), str(folder / "records"))
        options = AuditOptions(span=TimeSpan(start=environment.started_at))
        with open_ports(environment.config, options, locations, SparkOptions()) as ports:
            report = audit(environment.config, options, ports)
        print_report(Console(), report)
    except (UserError, KafkaOperationError) as problem:
        sys.stderr.write(f"the demo's traffic was not audited: {problem}\n")
    except ModuleNotFoundError as missing:
        sys.stderr.write(
            f"the demo's traffic was not audited: {missing.name} is not installed;"
            " run in a checkout of mm2slo: pip install '.[audit]'\n"
        )


def stop_mirror(environment: DemoEnvironment, alerting: AlertStack, console: Console) -> None:
    """Stop MirrorMaker 2, wait for pages in Slack, start it again, and wait for their resolution.

    If the report service runs, also waits until its page covers the outage. Raises UserError when a
    step takes longer than two minutes, or the page longer than eight.
    """
    for line in address_lines(environment.figures()):
        console.print(line, soft_wrap=True)
    holds = alerting.prometheus.holds
    _wait(lambda: holds(_HEALTHY), "both flows to be healthy")
    slack = alerting.slack
    sent = len(slack.messages)
    factor = 1 / SCALE.factor
    console.print(f"Durations in the rules are {factor:.0f} times shorter than in production.\n")
    environment.lab.mm2.stop()
    start = time.monotonic()

    def print_step(what: str) -> None:
        console.print(f"{time.monotonic() - start:6.1f} s  {what}", highlight=False, markup=False)

    print_step("MirrorMaker 2 has stopped")
    _wait(lambda: holds(_STOPPED), "the exporter to report the stop")
    print_step("the exporter reports flows as stopped")
    _wait(lambda: holds(_FIRING), "the alert to fire")
    print_step("MM2FlowStopped is firing")
    # One message per flow.
    _wait(lambda: len(slack.messages) >= sent + _FLOWS, "the pages")
    print_step("Slack received a page per flow; the first one:\n")
    show_slack_message(console, slack.messages[sent])
    environment.lab.mm2.start()
    console.print()
    print_step("MirrorMaker 2 is running again")
    _wait(lambda: len(slack.messages) >= sent + 2 * _FLOWS, "the resolved messages")
    print_step("Slack received both resolved messages; the first one:\n")
    show_slack_message(console, slack.messages[sent + _FLOWS])
    page = environment.extra_urls.get("report")
    if page is not None:
        # The page has figures of whole steps of five minutes.
        ended = datetime.now(UTC)
        step_end = ended + timedelta(milliseconds=STEP_MS - ended.timestamp() * 1000 % STEP_MS)
        console.print()
        print_step(f"the status page has figures until now at {step_end:%H:%M} UTC; waiting")
        _wait(
            lambda: is_recorded_after(page, step_end),
            "the page to show the outage",
            4 * _TIMEOUT,
        )
        print_step(f"the page shows the outage: {page}")
        for sentence in summary_lines(request_json(f"{page}slo/report?format=json")):
            console.print(f"{'':10}{sentence}", highlight=False, markup=False)


def _check_scenario(scenario: str, *, once: bool, as_json: bool, keep: bool) -> None:
    """Raise UserError for an unknown scenario, conflicting options or missing programs."""
    if scenario != _SCENARIO:
        raise UserError(f"unknown scenario {scenario!r}; expected {_SCENARIO}")
    for option, given in {"--once": once, "--json": as_json, "--keep": keep}.items():
        if given:
            raise UserError(f"--scenario cannot be combined with {option}")
    if missing := missing_programs():
        raise UserError(
            f"the scenario needs {' and '.join(missing)}; on Debian: apt-get install prometheus"
            " prometheus-alertmanager"
        )


def _wait_for_exit(console: Console) -> None:
    """Keep the status page up until q or a signal."""
    if sys.stdin is None or not sys.stdin.isatty():
        return
    with single_keys() as read_key:
        console.print("\nThe page stays up; press q or Ctrl-C to exit.")
        while read_key(3_600.0) != "q":
            pass


def _wait(condition: Callable[[], bool], what: str, timeout: float = _TIMEOUT) -> None:
    try:
        wait_for(condition, what, timeout, poll=_POLL)
    except LabError as error:
        raise UserError(f"{error}: the machine may be overloaded; try again") from None


def is_recorded_after(page: str, moment: datetime) -> bool:
    """Whether the report at the URL *page* covers *moment*."""
    try:
        return datetime.fromisoformat(request_json(f"{page}slo")["as_of"]) > moment
    except OSError:  # busy; the caller retries
        return False


def summary_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Describe the worst status and the costliest incident of `/slo/report`, by 69 columns."""
    entries = report["entries"]
    worst = entries[0]["status"]
    count = sum(each["status"] == worst for each in entries)
    yield f"{count} of {len(entries)} objectives: {worst.replace('_', ' ')}"
    for each in report["incidents"][:1]:
        start, end = (datetime.fromisoformat(each[name]) for name in ("start", "end"))
        sli = " ".join(filter(None, (each["sli"], each["tier"]))).replace("_", " ")
        yield f"{each['flow']} {sli}: {each['bad_events']:g} bad events,"
        yield (
            f"{start:%H:%M} to {end:%H:%M} UTC, {each['consumed_ratio']:.2%} of the error budget"
        )
