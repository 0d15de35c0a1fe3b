"""The scenario stop-mirror: MirrorMaker 2 stops, alerts fire and resolve."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from mm2slo_cli.demo.alert_stack import SCALE
from mm2slo_cli.demo.demo_screen import address_lines
from mm2slo_cli.demo.outage_summary import is_recorded_after, outage_lines
from mm2slo_cli.slack_view import show
from mm2slo_core.reporting.step_counts import STEP_MS
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from mm2slo_cli.demo.alert_stack import AlertStack
    from mm2slo_cli.demo.demo_environment import DemoEnvironment

_FLOWS: Final = 2
_HEALTHY: Final = f"count(mm2_flow_state{{state=~'running|idle'}} == 1) == {_FLOWS}"
_STOPPED: Final = 'count(mm2_flow_state{state="stopped"} == 1) > 0'
_FIRING: Final = 'count(ALERTS{alertname="MM2FlowStopped",alertstate="firing"}) > 0'
_TIMEOUT: Final = 120.0
_POLL: Final = 0.2


def stop_mirror(environment: DemoEnvironment, alerting: AlertStack, console: Console) -> None:
    """Stop MirrorMaker 2, wait for pages in Slack, start it again, and wait for their resolution.

    If the report service runs, also waits until its page covers the outage. Raises UserError when a
    step takes longer than two minutes, or the page longer than eight.
    """
    for line in address_lines(environment.figures()):
        console.print(line, soft_wrap=True)
    holds = alerting.prometheus.holds
    _wait(lambda: holds(_HEALTHY), "both flows to be healthy")
    sent = len(alerting.slack.messages)
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
    _wait_for_messages(alerting, sent + _FLOWS, "the pages")
    print_step("Slack received a page per flow; the first one:\n")
    show(console, alerting.slack.messages[sent])
    environment.lab.mm2.start()
    console.print()
    print_step("MirrorMaker 2 is running again")
    _wait_for_messages(alerting, sent + 2 * _FLOWS, "the resolved messages")
    print_step("Slack received both resolved messages; the first one:\n")
    show(console, alerting.slack.messages[sent + _FLOWS])
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
        for sentence in outage_lines(page):
            console.print(f"{'':10}{sentence}", highlight=False, markup=False)


def _wait_for_messages(alerting: AlertStack, count: int, what: str) -> None:
    if not alerting.slack.wait(count, _TIMEOUT):
        raise UserError(_timeout_message(what))


def _wait(condition: Callable[[], bool], what: str, timeout: float = _TIMEOUT) -> None:
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            raise UserError(_timeout_message(what, timeout))
        time.sleep(_POLL)


def _timeout_message(what: str, timeout: float = _TIMEOUT) -> str:
    return (
        f"timed out after {timeout:.0f} s waiting for {what}: "
        "the machine may be overloaded; try again"
    )
