"""The queries of a dashboard and their cost in Prometheus."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from dashboard_preview import time_range
from generated_dashboards import Json, fill_variables, panels

from mm2slo_dashboards.dashboard_files import find_series

POINTS: Final = 1_000
"""Points of a panel without a limit: one a pixel of half a usual screen."""
_SCRAPE: Final = 15.0
_BEFORE: Final = 3_600.0
"""Seconds that rates and the latest sample look back from the first point."""
_ANNOTATION_STEP: Final = 60.0
"""Seconds: the smallest step of annotations."""


class PanelQuery(NamedTuple):
    """A query of a panel over `span`; `step` is 0 for an instant query."""

    panel: str
    kind: str
    text: str
    span: time_range.Span
    step: float


class QueryCost(NamedTuple):
    """The size of the result and the cost of a query.

    `series` counts all series, `at_once` the most at one time; `samples` were read, at most `peak`
    of them in memory at a time. `error` is Prometheus's error, as for too many samples.
    """

    query: PanelQuery
    duration: float
    series: int = 0
    at_once: int = 0
    samples: int = 0
    peak: int = 0
    error: str = ""


def dashboard_queries(
    dashboard: Json, flow: str, now: float, since: str = ""
) -> Iterator[PanelQuery]:
    """The queries of its panels and annotations, by default over its default time range.

    All is selected where possible, else *flow*.
    """
    start = time_range.relative(since or dashboard["time"]["from"], now)
    if start is None:
        raise ValueError(f"{since or dashboard['time']['from']!r} is not a time before now")
    default = time_range.Span(start, now)

    def fill(text: str, span: time_range.Span, step: float) -> str:
        return fill_variables(dashboard, text, flow, span.builtin(step, _SCRAPE))

    for panel in panels(dashboard):
        own = panel.get("timeFrom")
        span = time_range.Span(now - time_range.length("timeFrom", own), now) if own else default
        step = span.step(panel.get("maxDataPoints") or POINTS, _SCRAPE)
        if panel.get("interval"):
            step = max(step, time_range.length("interval", panel["interval"]))
        for target in panel["targets"]:
            text = fill(target["expr"], span, step)
            query_step = 0.0 if target["instant"] else step
            yield PanelQuery(panel["title"], panel["type"], text, span, query_step)
    for annotation in dashboard["annotations"]["list"]:
        step = max(default.step(POINTS, _SCRAPE), _ANNOTATION_STEP)
        title = f"annotation: {annotation['name']}"
        yield PanelQuery(
            title, "annotation", fill(annotation["expr"], default, step), default, step
        )


def lookback(queries: Iterable[PanelQuery]) -> dict[str, float]:
    """How far back *queries* look, in seconds by series name."""
    found: dict[str, float] = {}
    for query in queries:
        for name in find_series(query.text):
            found[name] = max(found.get(name, 0.0), query.span.length + _BEFORE)
    return found


def run_query(url: str, query: PanelQuery) -> QueryCost:
    """Run *query* against the Prometheus at *url*."""
    parameters: dict[str, str] = {"query": query.text, "stats": "all"}
    if query.step:
        span = query.span.aligned(query.step)
        parameters |= {"start": f"{span.start}", "end": f"{span.end}", "step": f"{query.step}"}
    else:
        parameters["time"] = f"{query.span.end}"
    path = "query_range" if query.step else "query"
    body = urllib.parse.urlencode(parameters).encode()
    started = time.perf_counter()
    try:
        with urllib.request.urlopen(f"{url}/api/v1/{path}", body, timeout=120) as reply:
            text = reply.read()
    except urllib.error.HTTPError as error:
        with error:
            said = json.load(error)["error"]
        return QueryCost(query, time.perf_counter() - started, error=said)
    took = time.perf_counter() - started
    data = json.loads(text)["data"]
    samples = data["stats"]["samples"]
    times = Counter(
        at for each in data["result"] for at, _ in each.get("values", [each.get("value")])
    )
    return QueryCost(
        query,
        took,
        len(data["result"]),
        max(times.values(), default=0),
        samples["totalQueryableSamples"],
        samples["peakSamples"],
    )
