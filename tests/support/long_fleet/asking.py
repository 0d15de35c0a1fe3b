"""The queries of a board, asked of Prometheus with what they cost it."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from dashboard_preview import time_range
from dashed import filled, panels

from mm2slo_dashboards.checking import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dashed import Json

POINTS: Final = 1_000
"""What a panel asks for that says nothing else: a point a pixel of half a usual screen."""
_SCRAPE: Final = 15.0
_BEFORE: Final = 3_600.0
"""Seconds: what rates and the newest sample look back at the first point."""
_MARKS_STEP: Final = 60.0
"""Seconds: the finest step of annotations."""


class Asked(NamedTuple):
    """A query with the panel that it stands in, over `span`; `step` is 0 for now alone."""

    panel: str
    kind: str
    text: str
    span: time_range.Span
    step: float


class Answer(NamedTuple):
    """What Prometheus gave and what it took.

    `series` are those of all moments, `at_once` the most of one; `samples` were read, `peak` of
    them in memory at a time. `refused` says why Prometheus gave no answer, as for too many of them.
    """

    asked: Asked
    took: float
    series: int = 0
    at_once: int = 0
    samples: int = 0
    peak: int = 0
    refused: str = ""


def board_queries(dashboard: Json, flow: str, now: float, since: str = "") -> Iterator[Asked]:
    """Its panels' queries and its marks, by default of the board's usual time.

    All is chosen wherever it can be, and *flow* where one flow has to be.
    """
    start = time_range.relative(since or dashboard["time"]["from"], now)
    if start is None:
        raise ValueError(f"{since or dashboard['time']['from']!r} is no time before now")
    usual = time_range.Span(start, now)

    def asked(text: str, span: time_range.Span, step: float) -> str:
        return filled(dashboard, text, flow, span.builtin(step, _SCRAPE))

    for panel in panels(dashboard):
        own = panel.get("timeFrom")
        span = time_range.Span(now - time_range.length("timeFrom", own), now) if own else usual
        step = span.step(panel.get("maxDataPoints") or POINTS, _SCRAPE)
        if panel.get("interval"):
            step = max(step, time_range.length("interval", panel["interval"]))
        for target in panel["targets"]:
            text = asked(target["expr"], span, step)
            asked_step = 0.0 if target["instant"] else step
            yield Asked(panel["title"], panel["type"], text, span, asked_step)
    for marks in dashboard["annotations"]["list"]:
        step = max(usual.step(POINTS, _SCRAPE), _MARKS_STEP)
        title = f"marks: {marks['name']}"
        yield Asked(title, "marks", asked(marks["expr"], usual, step), usual, step)


def reach(queries: Iterable[Asked]) -> dict[str, float]:
    """How far back *queries* look, in seconds by the name of a series."""
    found: dict[str, float] = {}
    for asked in queries:
        for name in names(asked.text):
            found[name] = max(found.get(name, 0.0), asked.span.length + _BEFORE)
    return found


def ask(url: str, asked: Asked) -> Answer:
    """Ask the Prometheus at *url*."""
    parameters: dict[str, str] = {"query": asked.text, "stats": "all"}
    if asked.step:
        span = asked.span.aligned(asked.step)
        parameters |= {"start": f"{span.start}", "end": f"{span.end}", "step": f"{asked.step}"}
    else:
        parameters["time"] = f"{asked.span.end}"
    path = "query_range" if asked.step else "query"
    body = urllib.parse.urlencode(parameters).encode()
    started = time.perf_counter()
    try:
        with urllib.request.urlopen(f"{url}/api/v1/{path}", body, timeout=120) as reply:
            text = reply.read()
    except urllib.error.HTTPError as error:
        with error:
            said = json.load(error)["error"]
        return Answer(asked, time.perf_counter() - started, refused=said)
    took = time.perf_counter() - started
    data = json.loads(text)["data"]
    samples = data["stats"]["samples"]
    moments = Counter(
        at for each in data["result"] for at, _ in each.get("values", [each.get("value")])
    )
    return Answer(
        asked,
        took,
        len(data["result"]),
        max(moments.values(), default=0),
        samples["totalQueryableSamples"],
        samples["peakSamples"],
    )
