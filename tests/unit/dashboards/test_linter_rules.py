"""The 17 rules of Grafana's dashboard-linter, as documented.

Four do not apply: EXCLUDED has the reasons, as a `.lint` file would.
"""

import re
from collections.abc import Iterator

import promql_parser
import pytest
from dashboard_preview.interpolation import interpolate
from generated_dashboards import Json, dashboards, panels, variables

from mm2slo_core.catalogue.flow_metrics import RETENTION_LOST_RECORDS_TOTAL

EXCLUDED = {
    "template-job-rule": "labels identify flows, whatever the job; the exporters' job is "
    "configuration and part of the queries",
    "template-instance-rule": "replicas publish the same flows and are merged in the queries",
    "target-job-rule": "as template-job-rule",
    "target-instance-rule": "as template-instance-rule",
}
BUILTIN = {"__rate_interval": "1m", "__range": "6h", "__interval": "5m"}
PANEL_TYPES = {"stat", "timeseries", "table", "bargauge", "state-timeline"}
UNITS = {"s", "percentunit", "short", "recps", "reqps", "dateTimeAsIso", "bytes", "Bps", "suffix:x"}
BOARDS = [pytest.param(board, id=uid) for uid, board in dashboards().items()]


def targets(board: Json) -> Iterator[Json]:
    return (target for panel in panels(board) for target in panel["targets"])


def parsed(text: str) -> None:
    choices = {name: ["x"] for name in ("flow", "topic", "group", "sli")}
    promql_parser.parse(interpolate(text, choices, builtin=BUILTIN))


def test_excluded_rules_have_reasons() -> None:
    assert len(EXCLUDED) == 4
    assert all(len(reason) > 10 for reason in EXCLUDED.values())


@pytest.mark.parametrize("board", BOARDS)
def test_template_datasource_rule(board: Json) -> None:
    [source] = [each for each in board["templating"]["list"] if each["type"] == "datasource"]
    assert (source["name"], source["label"], source["query"]) == (
        "datasource",
        "Data source",
        "prometheus",
    )


@pytest.mark.parametrize("board", BOARDS)
def test_template_label_promql_rule(board: Json) -> None:
    for variable in variables(board).values():
        found = re.fullmatch(r"label_values\((?P<series>.+), (?P<label>\w+)\)", variable["query"])
        assert found is not None
        parsed(found["series"])


@pytest.mark.parametrize("board", BOARDS)
def test_template_on_time_change_reload_rule(board: Json) -> None:
    assert all(variable["refresh"] == 2 for variable in variables(board).values())


@pytest.mark.parametrize("board", BOARDS)
def test_variables_use_selected_data_source(board: Json) -> None:
    for variable in variables(board).values():
        assert variable["datasource"]["uid"] == "${datasource}"
        assert bool(variable.get("allValue")) is variable["includeAll"] is variable["multi"]


@pytest.mark.parametrize("board", BOARDS)
def test_panel_datasource_rule(board: Json) -> None:
    for panel in panels(board):
        wanted = {"type": "prometheus", "uid": "${datasource}"}
        assert panel["datasource"] == wanted
        assert all(target["datasource"] == wanted for target in panel["targets"])


@pytest.mark.parametrize("board", BOARDS)
def test_panel_title_description_rule(board: Json) -> None:
    for panel in panels(board):
        assert panel["type"] in PANEL_TYPES
        assert panel["title"]
        assert panel["description"]


@pytest.mark.parametrize("board", BOARDS)
def test_panel_units_rule(board: Json) -> None:
    for panel in panels(board):
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["unit"] in UNITS


@pytest.mark.parametrize("board", BOARDS)
def test_panel_no_targets_rule(board: Json) -> None:
    for panel in panels(board):
        assert panel["targets"]
        letters = [target["refId"] for target in panel["targets"]]
        assert len(set(letters)) == len(letters)
        assert all(letters)


@pytest.mark.parametrize("board", BOARDS)
def test_target_logql_rule_and_target_logql_auto_rule(board: Json) -> None:
    # No query uses Loki.
    assert {target["datasource"]["type"] for target in targets(board)} == {"prometheus"}


@pytest.mark.parametrize("board", BOARDS)
def test_target_promql_rule(board: Json) -> None:
    for target in targets(board):
        parsed(target["expr"])


@pytest.mark.parametrize("board", BOARDS)
def test_target_rate_interval_rule(board: Json) -> None:
    for target in targets(board):
        for window in re.findall(r"\b(?:rate|irate)\([^\[]*\[([^\]]+)\]", target["expr"]):
            assert window == "$__rate_interval"


@pytest.mark.parametrize("board", BOARDS)
def test_target_counter_agg_rule(board: Json) -> None:
    for target in targets(board):
        bare = re.sub(r"\b(?:rate|irate|increase)\([^)]*\)", "", target["expr"])
        counters = set(re.findall(r"\w+_total\b", bare))
        # A restarted exporter continues this counter, so that its values are comparable.
        assert counters <= {RETENTION_LOST_RECORDS_TOTAL.name}


@pytest.mark.parametrize("board", BOARDS)
def test_uneditable_dashboard(board: Json) -> None:
    assert board["editable"] is False
