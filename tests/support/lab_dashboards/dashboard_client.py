"""Runs the queries of panels, annotations and variables as Grafana does."""

import math
import time
import urllib.parse
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from generated_dashboards import Json, dashboards, fill_variables, named_targets, panels, variables

from mm2slo_lab.lab_monitoring import Prometheus, get_json
from mm2slo_lab.lab_topology import LabError
from mm2slo_lab.managed_process import wait_for

FLOW: Final = "us->eu"
Found = dict[str, Any]
Key = tuple[str, str]

_RECENT: Final = 60.0
_STEP: Final = 5.0


def wait_until_equal(read: Callable[[], object], expected: object, timeout: float = 180.0) -> None:
    """Wait until *read* returns *expected*; fails with the last value."""
    given: list[object] = []

    def agrees() -> bool:
        given.append(read())
        return bool(given[-1] == expected)

    with suppress(LabError):
        wait_for(agrees, "the figure", timeout, 0.5)
    assert given[-1] == expected


def _built_in() -> dict[str, str]:
    # Four scrapes of 1 s, as production has four of 15 s; an interval of one step.
    return {"__rate_interval": "8s", "__range": "5m", "__interval": "20s"}


@dataclass(frozen=True)
class LabDashboards:
    """The dashboards over *server*, with *flow* selected, or all where a variable allows it."""

    server: Prometheus
    flow: str = FLOW
    builtin: Mapping[str, str] = field(default_factory=_built_in)

    def empty_panels(self) -> set[Key]:
        """The panels without data in the last minute, by uid and title."""
        return {
            (uid, panel["title"])
            for uid, dashboard in dashboards().items()
            for panel in panels(dashboard)
            if not any(self._recent_samples(dashboard, target) for target in panel["targets"])
        }

    def values(
        self, uid: str, title: str, *by: str, name: str | None = None, **chosen: str
    ) -> dict[tuple[str, ...], float]:
        """The current values of a panel by the labels *by*.

        *name* is the legend or column title, where a panel has several queries; *chosen* are
        values of variables other than all.
        """
        dashboard, target = _target(uid, title, name)
        text = self._text(dashboard, target["expr"], chosen)
        found = {
            tuple(each["metric"].get(label, "") for label in by): float(each["value"][1])
            for each in self._ask("query", {"query": text})
        }
        return {key: value for key, value in found.items() if not math.isnan(value)}

    def value(
        self, uid: str, title: str, *, name: str | None = None, **labels: str
    ) -> float | None:
        """The current value of the panel's only series with *labels*; None without it."""
        found = self.values(uid, title, *labels, name=name)
        wanted = tuple(labels.values())
        return found.get(wanted)

    def time_series(
        self, uid: str, title: str, name: str | None = None
    ) -> list[tuple[float, float]]:
        """The points of the last minute of a panel's only series, a second apart."""
        dashboard, target = _target(uid, title, name)
        [found] = self._range(self._text(dashboard, target["expr"]), step=1.0)
        return [(float(at), float(value)) for at, value in found["values"]]

    def choices(self, uid: str, variable: str) -> set[str]:
        """The values of a dashboard variable, with the flow selected."""
        query = variables(dashboards()[uid])[variable]["query"]
        series, _, label = query.removeprefix("label_values(").removesuffix(")").rpartition(", ")
        text = self._text(dashboards()[uid], series, {"flow": self.flow})
        return {each["metric"][label] for each in self._ask("query", {"query": text})}

    def annotations(self, uid: str) -> dict[str, list[Found]]:
        """The series of each annotation over the last minute, by its name."""
        dashboard = dashboards()[uid]
        return {
            each["name"]: self._range(self._text(dashboard, each["expr"]), step=1.0)
            for each in dashboard["annotations"]["list"]
        }

    def _recent_samples(self, dashboard: Json, target: Json) -> list[Found]:
        text = self._text(dashboard, target["expr"])
        found = self._ask("query", {"query": text}) if target["instant"] else self._range(text)
        return [
            each
            for each in found
            if any(
                not math.isnan(float(value)) for _, value in each.get("values", [each.get("value")])
            )
        ]

    def _text(
        self, dashboard: Json, expression: str, chosen: Mapping[str, str] | None = None
    ) -> str:
        return fill_variables(dashboard, expression, self.flow, self.builtin, chosen)

    def _range(self, text: str, step: float = _STEP) -> list[Found]:
        # Whole seconds, so that the points of two queries have the same times.
        now = math.floor(time.time())
        times = {"start": f"{now - _RECENT}", "end": f"{now}", "step": f"{step}"}
        return self._ask("query_range", {"query": text, **times})

    def _ask(self, path: str, parameters: Mapping[str, str]) -> list[Found]:
        query = urllib.parse.urlencode(parameters)
        found: list[Found] = get_json(f"{self.server.url}/api/v1/{path}?{query}")["data"]["result"]
        return found


def _target(uid: str, title: str, name: str | None) -> tuple[Json, Json]:
    """A panel's query: its only one, or the one with the legend or column *name*."""
    dashboard = dashboards()[uid]
    [panel] = [each for each in panels(dashboard) if each["title"] == title]
    targets = named_targets(panel)
    if name is None:
        [target] = targets.values()
    else:
        target = targets[name]
    return dashboard, target
