"""A fake Prometheus, dashboards made for a test, and the texts of a page."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any, Final

from dashboard_preview.board_page import Page, rendered
from dashboard_preview.grafana_json import dashboard
from dashboard_preview.time_range import Span

Json = dict[str, Any]

END: Final = 1_700_000_100.0
"""2023-11-14 22:15:00 UTC."""
SPAN: Final = Span(END - 600, END)


@dataclass
class FakePrometheus:
    """Results by a part of the query, or by label for `label_values`; empty otherwise.

    The longest matching part is used; `requests` records all requests.
    """

    answers: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def get(self, path: str, parameters: Sequence[tuple[str, str]]) -> Any:
        given = dict(parameters)
        self.requests.append((path, given))
        if path.startswith("label/"):
            return list(self.values.get(path.split("/")[1], ()))
        kind = "matrix" if path == "query_range" else "vector"
        fitting = sorted((part for part in self.answers if part in given["query"]), key=len)
        return self.answers[fitting[-1]] if fitting else {"resultType": kind, "result": []}


def vector(*series: tuple[Mapping[str, str], float]) -> Json:
    """The result of an instant query."""
    result = [{"metric": dict(labels), "value": [END, f"{value}"]} for labels, value in series]
    return {"resultType": "vector", "result": result}


def matrix(*series: tuple[Mapping[str, str], Mapping[int, float]]) -> Json:
    """The result of a range query; times are seconds before `END`."""
    return {
        "resultType": "matrix",
        "result": [
            {
                "metric": dict(labels),
                "values": [[END - ago, f"{value}"] for ago, value in sorted(points.items())[::-1]],
            }
            for labels, points in series
        ],
    }


def dashboard_json(*panels: Json) -> Json:
    """A dashboard as the generator writes it."""
    return {
        "uid": "mine",
        "title": "Mine",
        "description": "For a test.",
        "panels": list(panels),
        "templating": {"list": []},
        "annotations": {"list": []},
        "links": [],
        "time": {"from": "now-6h", "to": "now"},
    }


def draw_page(
    document: Json,
    server: FakePrometheus,
    *,
    scrape: float = 15.0,
    **chosen: str,
) -> Page:
    """Draw *document* from *server*, over ten minutes by default."""
    given = {name: [value] for name, value in chosen.items()}
    others = {"mine": "Mine", "mm2slo-flow": "Flow"}
    return rendered(
        dashboard(document, "mine.json"),
        server,
        given=given,
        span=SPAN,
        scrape=scrape,
        others=others,
    )


def visible_texts(html: str) -> list[str]:
    """The visible texts of the page, in order, without tooltips."""
    shown = re.sub(r"<(title|style|details)\b.*?</\1>", "", html, flags=re.DOTALL)
    return [unescape(each) for each in re.split(r"<[^>]*>", shown) if each.strip()]


def panel_html(html: str, title: str) -> str:
    """The HTML of the panel *title*."""
    for found in re.findall(r"<section.*?</section>", html, re.DOTALL):
        if unescape(re.search(r'aria-label="([^"]*)"', found)[1]) == title:  # type: ignore[index]
            return str(found)
    raise AssertionError(f"no panel {title!r}")
