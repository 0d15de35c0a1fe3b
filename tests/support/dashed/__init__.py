"""The generated dashboards as JSON, and a walk through them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dashboard_preview.interpolation import ALL, interpolate

from mm2slo_dashboards.files import DASHBOARDS, generated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mm2slo_core.config import Config

Json = dict[str, Any]
ROOT: Final = Path(__file__).resolve().parents[3]


class Expression(NamedTuple):
    """A query with where it stands; `kind` is panel, variable or annotation."""

    uid: str
    where: str
    kind: str
    text: str


@cache
def files() -> dict[str, str]:
    """The files of the default objectives by their path."""
    return generated()


@cache
def dashboards() -> dict[str, Json]:
    """The dashboards of the default objectives by uid."""
    return _dashboards(files())


def of(config: Config) -> dict[str, Json]:
    """The dashboards of *config* by uid."""
    return _dashboards(generated(config))


def _dashboards(found: dict[str, str]) -> dict[str, Json]:
    return {
        Path(name).stem: json.loads(text)
        for name, text in found.items()
        if name.startswith(DASHBOARDS)
    }


def panels(dashboard: Json) -> Iterator[Json]:
    """The panels that show something: all but rows."""
    return (panel for panel in dashboard["panels"] if panel["type"] != "row")


def every_panel() -> list[tuple[str, Json]]:
    """Each panel of each dashboard, with the uid."""
    return [(uid, panel) for uid, found in dashboards().items() for panel in panels(found)]


def expressions() -> list[Expression]:
    """Each expression of each dashboard: of panels, variables and annotations."""
    return [
        Expression(uid, where, kind, text)
        for uid, found in dashboards().items()
        for where, kind, text in _expressions(found)
    ]


def variables(dashboard: Json) -> dict[str, Json]:
    """The variables that are queried, by name."""
    listed = dashboard["templating"]["list"]
    return {each["name"]: each for each in listed if each["type"] == "query"}


def filled(
    dashboard: Json,
    text: str,
    flow: str,
    builtin: Mapping[str, str],
    chosen: Mapping[str, str] | None = None,
) -> str:
    """*text* as Grafana asks it: all is chosen where it can be, and *flow* where one has to be.

    *builtin* are Grafana's own variables, *chosen* other choices by variable.
    """
    every = {name: each.get("allValue", "") for name, each in variables(dashboard).items()}
    choices = {name: [ALL] if each else [flow] for name, each in every.items()}
    choices |= {name: [value] for name, value in (chosen or {}).items()}
    return interpolate(text, choices, everything=every, builtin=builtin)


def named_targets(panel: Json) -> dict[str, Json]:
    """A panel's queries by the title of their column, or by their legend."""
    columns = {
        name.removeprefix("Value #"): title
        for step in panel.get("transformations", [])
        if step["id"] == "organize"
        for name, title in step["options"]["renameByName"].items()
    }
    return {
        columns.get(target["refId"]) or target.get("legendFormat", ""): target
        for target in panel["targets"]
    }


def _expressions(dashboard: Json) -> Iterator[tuple[str, str, str]]:
    for panel in panels(dashboard):
        for target in panel["targets"]:
            yield f"{panel['title']} {target['refId']}", "panel", target["expr"]
    for name, variable in variables(dashboard).items():
        inner = variable["query"].removeprefix("label_values(").rpartition(",")[0]
        yield name, "variable", inner
    for annotation in dashboard["annotations"]["list"]:
        yield annotation["name"], "annotation", annotation["expr"]
