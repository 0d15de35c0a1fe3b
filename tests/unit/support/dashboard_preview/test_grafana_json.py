"""The committed boards are read whole; what the preview does not know is refused by its name."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from dashboard_preview.grafana_json.dashboard_json import ROW, dashboard, dashboards
from dashed import ROOT
from dashed import dashboards as generated

from mm2slo_core.user_errors import UserError
from mm2slo_dashboards.files import DASHBOARDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Json = dict[str, Any]


def test_the_committed_boards_are_known_in_all_their_settings() -> None:
    folder = ROOT / "dashboards" / "generated" / DASHBOARDS
    found = {each.uid: each for each in dashboards(folder)}
    documents = {path.stem: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}
    assert found.keys() == documents.keys() == generated().keys()
    for uid, document in documents.items():
        read = [(each.kind, each.title) for each in found[uid].panels]
        assert read == [(each["type"], each["title"]) for each in document["panels"]]
        asked = [target.expr for panel in found[uid].panels for target in panel.targets]
        assert asked == [
            target["expr"]
            for panel in document["panels"]
            if panel["type"] != ROW
            for target in panel["targets"]
        ]


def test_looks_are_defaults_and_overrides() -> None:
    fleet = dashboard(generated()["mm2slo-overview"], "fleet")
    [flows] = [each for each in fleet.panels if each.title == "Which flows need attention first?"]
    assert flows.looks is not None
    left = flows.looks.of("Budget left")
    assert (left.unit, left.decimals, left.cell) == ("percentunit", 1, "color-text")
    assert [step.bound for step in left.steps] == [None, 0.0, 0.25]
    state = flows.looks.of("State")
    assert (state.cell, state.words["3"].text) == ("color-background", "stopped")
    assert flows.looks.of("Flow").links[0].url.startswith("/d/mm2slo-flow?")
    assert flows.looks.of("another").unit == "short"


def field(key: str, value: Any) -> Callable[[Json], None]:
    def change(panel: Json) -> None:
        panel["fieldConfig"]["defaults"][key] = value

    return change


def option(key: str, value: Any) -> Callable[[Json], None]:
    def change(panel: Json) -> None:
        panel["options"][key] = value

    return change


def override(matcher: str, key: str, value: Any) -> Callable[[Json], None]:
    def change(panel: Json) -> None:
        panel["fieldConfig"]["overrides"].append(
            {
                "matcher": {"id": matcher, "options": "x"},
                "properties": [{"id": key, "value": value}],
            }
        )

    return change


def whole(key: str, value: Any) -> Callable[[Json], None]:
    def change(panel: Json) -> None:
        panel[key] = value

    return change


def target(key: str, value: Any) -> Callable[[Json], None]:
    def change(panel: Json) -> None:
        panel["targets"][0][key] = value

    return change


COLOURED = {"steps": [{"color": "green", "value": None}], "mode": "absolute"}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (whole("type", "piechart"), "panels of the type 'piechart'"),
        (whole("transformations", [{"id": "reduce", "options": {}}]), "transformation 'reduce'"),
        (option("sparkline", True), "option 'sparkline' of stat"),
        (option("graphMode", "area"), "graphMode = 'area' of stat"),
        (field("unit", "ms"), "unit 'ms'"),
        (field("displayName", "x"), "property of a field 'displayName'"),
        (field("thresholds", {"mode": "percentage", "steps": []}), "thresholds 'percentage'"),
        (field("thresholds", COLOURED), "colour 'green'"),
        (field("color", {"mode": "palette-classic"}), "colours 'palette-classic'"),
        (field("mappings", [{"type": "range", "options": {}}]), "value mapping 'range'"),
        (field("custom", {"drawStyle": "bars"}), "custom.drawStyle 'bars'"),
        (override("byRegexp", "unit", "s"), "choose fields 'byRegexp'"),
        (override("byName", "max", 1), None),
        (override("byName", "custom.width", 90), "override of .x.: .*field .custom.width."),
        (target("format", "logs"), "format 'logs'"),
        (target("exemplar", True), "setting of a query 'exemplar'"),
        (whole("repeat", "flow"), "setting of a panel 'repeat'"),
        (whole("interval", "5 minutes"), "interval is '5 minutes': expected a length"),
    ],
)
def test_what_is_not_known_is_refused(change: Callable[[Json], None], named: str | None) -> None:
    document = copy.deepcopy(generated()["mm2slo-overview"])
    changed = document["panels"][1]
    change(changed)
    if named is None:
        dashboard(document, "fleet.json")
        return
    with pytest.raises(UserError, match=rf"fleet\.json, panel 'How many flows run\?'.*{named}"):
        dashboard(document, "fleet.json")


def test_a_dashboard_of_another_shape_is_told() -> None:
    document = copy.deepcopy(generated()["mm2slo-overview"])
    del document["panels"][1]["gridPos"]
    with pytest.raises(UserError, match=r"fleet\.json is not as .* writes dashboards .*'gridPos'"):
        dashboard(document, "fleet.json")
    row = {**document["panels"][0], "collapsed": True}
    with pytest.raises(UserError, match="does not know collapsed rows"):
        dashboard({**document, "panels": [row]}, "fleet.json")


def test_a_folder_without_dashboards_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="mm2slo dashboards generate"):
        dashboards(tmp_path)
    (tmp_path / "board.json").write_text("{")
    with pytest.raises(UserError, match=r"board\.json cannot be read as JSON"):
        dashboards(tmp_path)
