"""The committed files, and what about the JSON no schema tells."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from dashboard_preview.interpolation import ALL, interpolate
from dashed import ROOT, Json, dashboards, every_panel, files, of, panels

from mm2slo_core.config import load_config
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.files import (
    CONFIG_MAPS,
    DASHBOARDS,
    DATA_SOURCES,
    OPERATOR,
    PROVIDER,
    generated,
)
from mm2slo_dashboards.states import CONNECT_STATES, FLOW_STATES

CONFIG = """\
clusters:
  us: {bootstrap_servers: "us:9092"}
  eu: {bootstrap_servers: "eu:9092"}
flows: [{flow: us->eu}]
alerting:
  links:
    runbook: https://git.example/runbooks/
    report: https://slo.example
    prometheus: https://prometheus.example
"""
ODD = 'a&b=c "d"/e?f#g%h+i$j->k'
ADDRESSES = {
    (uid, link["url"])
    for uid, board in of(load_config(CONFIG)).items()
    for panel in panels(board)
    for link in panel["links"]
}


def test_the_committed_files_are_current() -> None:
    for name, text in files().items():
        path = ROOT / "dashboards" / "generated" / name
        assert path.read_text(encoding="utf-8") == text, "run: mm2slo dashboards generate"


def test_the_same_objectives_give_the_same_bytes() -> None:
    assert generated() == files()


@pytest.mark.parametrize(("uid", "board"), dashboards().items())
def test_ids_and_places_are_those_of_the_order(uid: str, board: Json) -> None:
    assert board["uid"] == uid
    assert [panel["id"] for panel in board["panels"]] == list(range(1, len(board["panels"]) + 1))
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + dx, place["y"] + dy)
            for dx in range(place["w"])
            for dy in range(place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_nothing_waits_to_be_filled_in() -> None:
    for name, text in files().items():
        assert "__inputs" not in text, name
        assert "DS_PROMETHEUS" not in text, name


def test_no_committed_dashboard_leads_outside() -> None:
    for uid, panel in every_panel():
        for link in panel["links"]:
            assert link["url"].startswith("/d/mm2slo-"), uid


def test_every_link_carries_what_is_chosen_whatever_its_name() -> None:
    assert len(ADDRESSES) > 20
    for uid, address in sorted(ADDRESSES):
        if address.startswith("https://"):
            assert address.startswith("https://git.example/runbooks/MM2")
            assert (ROOT / "docs" / "runbooks" / address.rpartition("/")[2]).is_file()
        else:
            leads_on(uid, address)


def leads_on(uid: str, address: str) -> None:
    choices = {
        "datasource": ["my prometheus"],
        "flow": [ODD],
        "topic": ["t", ODD],
        "group": [ALL],
        "sli": ["latency"],
    }
    filled = interpolate(address, choices, builtin={"__url_time_range": "from=now-6h&to=now"})
    assert "$" not in filled.replace("$__all", "").replace("%24", "")
    parts = urlsplit(filled)
    to = parts.path.removeprefix("/d/")
    assert to in set(DashboardUid) - {uid}
    query = parse_qs(parts.query, strict_parsing=True)
    assert query["var-datasource"] == ["my prometheus"]
    assert (query["from"], query["to"]) == (["now-6h"], ["now"])
    known = {variable["name"] for variable in dashboards()[to]["templating"]["list"]}
    carried = {key.removeprefix("var-") for key in query if key.startswith("var-")}
    assert carried <= known
    for name, value in (("flow", [ODD]), ("topic", ["t", ODD]), ("group", [ALL])):
        if name in carried:
            assert query[f"var-{name}"] == value


def test_a_tables_flow_leads_to_its_board() -> None:
    found = of(load_config(CONFIG))["mm2slo-overview"]
    [table] = [each for each in panels(found) if each["title"].startswith("Which flows need")]
    [linked] = [
        entry["value"][0]["url"]
        for override in table["fieldConfig"]["overrides"]
        for entry in override["properties"]
        if entry["id"] == "links"
    ]
    assert linked == (
        "/d/mm2slo-flow?${datasource:queryparam}&${__url_time_range}"
        "&var-flow=${__data.fields.Flow:percentencode}"
    )


def test_a_state_has_the_same_colour_everywhere() -> None:
    wanted = {state.word: state.colour.value for state in (*FLOW_STATES, *CONNECT_STATES)}
    seen = set()
    for _, panel in every_panel():
        defaults = panel["fieldConfig"]["defaults"]
        mapped = [*defaults.get("mappings", [])]
        for override in panel["fieldConfig"]["overrides"]:
            for entry in override["properties"]:
                if entry["id"] == "mappings":
                    mapped += entry["value"]
                name = override["matcher"]["options"]
                if entry["id"] == "color" and name in wanted:
                    assert entry["value"]["fixedColor"] == wanted[name]
        for mapping in mapped:
            for option in mapping["options"].values():
                if option["text"] in wanted:
                    seen.add(option["text"])
                    assert option["color"] == wanted[option["text"]]
    assert seen == set(wanted)


def test_every_colour_is_of_the_palette() -> None:
    palette = {colour.value for colour in Colour}
    used = {
        step["color"]
        for _, panel in every_panel()
        for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    }
    assert used <= palette


def test_what_no_data_means_is_told() -> None:
    for uid, panel in every_panel():
        assert len(panel["fieldConfig"]["defaults"]["noValue"]) > 10, (uid, panel["title"])


def test_grafanas_files_find_the_dashboards() -> None:
    found = generated(load_config(CONFIG))
    [provider] = yaml.safe_load(found[PROVIDER])["providers"]
    assert provider["type"] == "file"
    assert provider["allowUiUpdates"] is False
    assert provider["options"] == {"path": "/var/lib/grafana/dashboards/mm2slo"}
    sources = yaml.safe_load(found[DATA_SOURCES])["datasources"]
    assert [(each["uid"], each["url"]) for each in sources] == [
        ("mm2slo-prometheus", "https://prometheus.example"),
        ("mm2slo-alertmanager", "http://127.0.0.1:9093"),
    ]
    assert sources[0]["jsonData"]["httpMethod"] == "POST"


def test_config_maps_hold_the_very_files() -> None:
    found = files()
    maps = list(yaml.load_all(found[CONFIG_MAPS], yaml.CSafeLoader))
    for each in maps:
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        [(key, text)] = each["data"].items()
        assert text == found[f"{DASHBOARDS}/{key}"]
    resources = list(yaml.safe_load_all(found[OPERATOR]))
    assert [each["spec"]["configMapRef"] for each in resources] == [
        {"name": each["metadata"]["name"], "key": next(iter(each["data"]))} for each in maps
    ]
    assert len(resources) == len(set(DashboardUid))


def test_figures_are_plain() -> None:
    for name, text in files().items():
        if name.startswith(DASHBOARDS):
            assert json.loads(text)["schemaVersion"] == 39
            assert "99999999" not in text.replace("1e-09", "")
