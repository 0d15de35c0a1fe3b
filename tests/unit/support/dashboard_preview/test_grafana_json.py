"""The generated dashboards are parsed completely; unknown settings are refused."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from dashboard_preview.grafana_json import ROW, dashboard
from generated_dashboards import dashboards as generated

Json = dict[str, Any]


def test_generated_dashboards_are_parsed_completely() -> None:
    for uid, document in generated().items():
        found = dashboard(document, uid)
        read = [(each.kind, each.title) for each in found.panels]
        assert read == [(each["type"], each["title"]) for each in document["panels"]]
        asked = [target.expr for panel in found.panels for target in panel.targets]
        assert asked == [
            target["expr"]
            for panel in document["panels"]
            if panel["type"] != ROW
            for target in panel["targets"]
        ]


def test_field_styles_have_defaults_and_overrides() -> None:
    fleet = dashboard(generated()["mm2slo-overview"], "fleet")
    [flows] = [each for each in fleet.panels if each.title == "Flow status"]
    assert flows.styles is not None
    left = flows.styles.of("Remaining budget")
    assert (left.unit, left.decimals, left.cell) == ("percentunit", 1, "color-text")
    assert [step.bound for step in left.steps] == [None, 0.0, 0.25]
    state = flows.styles.of("State")
    assert (state.cell, state.mapped["3"].text) == ("color-background", "stopped")
    assert flows.styles.of("Flow").links[0].url.startswith("/d/mm2slo-flow?")
    assert flows.styles.of("another").unit == "short"


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
        (whole("type", "piechart"), "panel of type 'piechart'"),
        (whole("transformations", [{"id": "reduce", "options": {}}]), "transformation 'reduce'"),
        (option("sparkline", True), "option of stat 'sparkline'"),
        (option("graphMode", "area"), "value of graphMode of stat 'area'"),
        (field("unit", "ms"), "unit 'ms'"),
        (field("displayName", "x"), "property of a field 'displayName'"),
        (field("thresholds", {"mode": "percentage", "steps": []}), "thresholds 'percentage'"),
        (field("thresholds", COLOURED), "colour 'green'"),
        (field("color", {"mode": "continuous-reds"}), "colours 'continuous-reds'"),
        (field("mappings", [{"type": "regex", "options": {}}]), "value mapping 'regex'"),
        (field("custom", {"drawStyle": "bars"}), "custom.drawStyle 'bars'"),
        (override("byRegexp", "unit", "s"), "choose fields 'byRegexp'"),
        (override("byName", "max", 1), None),
        (override("byName", "custom.width", 90), "override of .x.: .*field .custom.width."),
        (target("format", "logs"), "format 'logs'"),
        (target("exemplar", True), "setting of a query 'exemplar'"),
        (whole("repeat", "flow"), "setting of a panel 'repeat'"),
        (
            whole("transformations", [{"id": "organize", "options": {"includeByName": {}}}]),
            "option of organize 'includeByName'",
        ),
    ],
)
def test_unknown_setting_raises_value_error(
    change: Callable[[Json], None], named: str | None
) -> None:
    document = copy.deepcopy(generated()["mm2slo-overview"])
    changed = document["panels"][1]
    change(changed)
    if named is None:
        dashboard(document, "fleet.json")
        return
    with pytest.raises(ValueError, match=rf"fleet\.json, panel 'Flows by state'.*{named}"):
        dashboard(document, "fleet.json")
