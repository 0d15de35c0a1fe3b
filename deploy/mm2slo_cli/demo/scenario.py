"""Faults that the demo plays by itself, told from the fault to the message and its end."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from mm2slo_cli.demo.monitored import SCALE
from mm2slo_cli.demo.outage import outage, recorded
from mm2slo_cli.demo.view import address_lines
from mm2slo_cli.slack_view import show
from mm2slo_core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from mm2slo_cli.demo.monitored import Monitored
    from mm2slo_cli.demo.stage import Stage

_FLOWS: Final = 2
_HEALTHY: Final = f"count(mm2_flow_state{{state=~'running|idle'}} == 1) == {_FLOWS}"
_SEEN: Final = 'count(mm2_flow_state{state="stopped"} == 1) > 0'
_FIRES: Final = 'count(ALERTS{alertname="MM2FlowStopped",alertstate="firing"}) > 0'
_PATIENCE: Final = 120.0
_POLL: Final = 0.2


def stop_mirror(stage: Stage, watched: Monitored, console: Console) -> None:
    """Stop MirrorMaker 2, follow the alarm to Slack, start it again, and follow the end of it.

    Where there is a page, it is waited for until it tells the whole outage. Raises UserError when
    a step does not come within two minutes, that one within four.
    """
    for line in address_lines(stage.figures()):
        console.print(line, soft_wrap=True)
    ask = watched.prometheus.holds
    _wait(lambda: ask(_HEALTHY), "both flows to be well")
    told = len(watched.slack.messages)
    factor = 1 / SCALE.factor
    console.print(f"Waits of the rules are {factor:.0f} times as short as in production.\n")
    stage.lab.mm2.stop()
    start = time.monotonic()

    def say(what: str) -> None:
        console.print(f"{time.monotonic() - start:6.1f} s  {what}", highlight=False, markup=False)

    say("MirrorMaker 2 has stopped")
    _wait(lambda: ask(_SEEN), "the exporter to say stopped")
    say("the exporter says so, and Prometheus has scraped it")
    _wait(lambda: ask(_FIRES), "the alert to fire")
    say("Prometheus fires MM2FlowStopped")
    # A message for each flow, both ways.
    _arrived(watched, told + _FLOWS, "the pages")
    say("Slack has the pages, one for each flow; the first one:\n")
    show(console, watched.slack.messages[told])
    stage.lab.mm2.start()
    console.print()
    say("MirrorMaker 2 runs again")
    _arrived(watched, told + 2 * _FLOWS, "the end of it")
    say("Slack has the end of both:\n")
    show(console, watched.slack.messages[told + _FLOWS])
    page = stage.beside.get("report")
    if page is not None:
        # The minute of the end, and one more: until then the incident would go on.
        ended = datetime.now(UTC) + timedelta(minutes=1)
        console.print()
        say("the page tells by whole minutes; waiting for one after the end")
        _wait(lambda: recorded(page, ended), "the page to tell the outage", 2 * _PATIENCE)
        say(f"the page has the outage: {page}")
        for sentence in outage(page):
            console.print(f"{'':10}{sentence}", highlight=False, markup=False)


def _arrived(watched: Monitored, count: int, what: str) -> None:
    if not watched.slack.wait(count, _PATIENCE):
        raise UserError(_late(what))


def _wait(condition: Callable[[], bool], what: str, patience: float = _PATIENCE) -> None:
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise UserError(_late(what, patience))
        time.sleep(_POLL)


def _late(what: str, patience: float = _PATIENCE) -> str:
    return f"waited {patience:.0f} s for {what}: is this machine very busy? Try again"
