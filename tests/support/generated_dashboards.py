"""The generated dashboards as JSON: their panels, variables and expressions."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from dashboard_preview.interpolation import ALL, interpolate

from mm2slo_core.config.config_model import Config
from mm2slo_dashboards.dashboard_files import DASHBOARD_FOLDER, generate_files

Json = dict[str, Any]
ROOT: Final = Path(__file__).resolve().parents[2]


class Expression(NamedTuple):
    """A query and its location; `kind` is panel, variable or annotation."""

    uid: str
    where: str
    kind: str
    text: str


@cache
def generated_files() -> dict[str, str]:
    """The files for the default objectives by path."""
    return generate_files()


@cache
def dashboards() -> dict[str, Json]:
    """The dashboards for the default objectives by uid."""
    return _dashboards(generated_files())


def load_for_config(config: Config) -> dict[str, Json]:
    """The dashboards for *config* by uid."""
    return _dashboards(generate_files(config))


def _dashboards(found: dict[str, str]) -> dict[str, Json]:
    return {
        Path(name).stem: json.loads(text)
        for name, text in found.items()
        if name.startswith(DASHBOARD_FOLDER)
    }


def panels(dashboard: Json) -> Iterator[Json]:
    """All panels but rows."""
    return (panel for panel in dashboard["panels"] if panel["type"] != "row")


def all_panels() -> list[tuple[str, Json]]:
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
    """The query variables by name."""
    listed = dashboard["templating"]["list"]
    return {each["name"]: each for each in listed if each["type"] == "query"}


def fill_variables(
    dashboard: Json,
    text: str,
    flow: str,
    builtin: Mapping[str, str],
    chosen: Mapping[str, str] | None = None,
) -> str:
    """*text* as Grafana sends it: with All selected where possible, else *flow*.

    *builtin* are Grafana's own variables, *chosen* other values by variable.
    """
    every = {name: each.get("allValue", "") for name, each in variables(dashboard).items()}
    choices = {name: [ALL] if each else [flow] for name, each in every.items()}
    choices |= {name: [value] for name, value in (chosen or {}).items()}
    return interpolate(text, choices, all_values=every, builtin=builtin)


def named_targets(panel: Json) -> dict[str, Json]:
    """A panel's queries by column title or legend."""
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
