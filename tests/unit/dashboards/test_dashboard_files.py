"""The committed files, and properties of the JSON beyond its schema."""

import itertools
import json
import math
import re
from copy import deepcopy
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from dashboard_preview.interpolation import ALL, interpolate
from generated_dashboards import (
    ROOT,
    Json,
    all_panels,
    dashboards,
    generated_files,
    load_for_config,
    panels,
)

from mm2slo_core.config.config_loader import load_config
from mm2slo_core.link_targets import DashboardUid
from mm2slo_dashboards.dashboard_files import (
    CONFIG_MAPS,
    DASHBOARD_FOLDER,
    DATA_SOURCES,
    OPERATOR,
    PROVIDER,
    generate_files,
)
from mm2slo_dashboards.dashboard_model import CONNECT_STATES, FLOW_STATES, LINES, Colour

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
    for uid, board in load_for_config(load_config(CONFIG)).items()
    for panel in panels(board)
    for link in panel["links"]
}


def test_committed_files_are_current() -> None:
    for name, text in generated_files().items():
        path = ROOT / "dashboards" / "generated" / name
        assert path.read_text(encoding="utf-8") == text, "run: mm2slo dashboards generate"


def test_queries_select_configured_namespace() -> None:
    files = generate_files(load_config(f"{CONFIG}  namespace: kafka\n"))
    queries = re.findall(r'"expr": (".*mm2_.*")', "".join(files.values()))
    assert len(queries) > 100
    assert all(json.loads(each).count('namespace="kafka"') for each in queries)


def test_severities_of_configuration_are_coloured() -> None:
    read = load_config(f"{CONFIG}  severities: {{page: critical, ticket: warning}}\n")
    [panel] = [
        each
        for each in panels(load_for_config(read)[DashboardUid.FLEET])
        if each["title"] == "Firing alerts by severity"
    ]
    overrides = panel["fieldConfig"]["overrides"]
    assert {each["matcher"]["options"] for each in overrides} == {"critical", "warning"}


def test_generate_files_is_deterministic() -> None:
    assert generate_files() == generated_files()


@pytest.mark.parametrize(("uid", "board"), dashboards().items())
def test_panel_ids_are_sequential_and_places_do_not_overlap(uid: str, board: Json) -> None:
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


def test_dashboards_need_no_inputs() -> None:
    for name, text in generated_files().items():
        assert "__inputs" not in text, name
        assert "DS_PROMETHEUS" not in text, name


@pytest.mark.parametrize("uid", dashboards())
def test_export_differs_from_provisioned_dashboard_in_its_inputs_only(uid: str) -> None:
    path = ROOT / "dashboards" / "generated" / "grafana.com" / f"{uid}.json"
    exported = json.loads(path.read_text(encoding="utf-8"))
    (needed,), required = exported.pop("__inputs"), exported.pop("__requires")
    assert (needed["type"], needed["pluginId"]) == ("datasource", "prometheus")
    assert (exported.pop("__elements"), exported.pop("id")) == ({}, None)
    source = exported["templating"]["list"][0]
    assert (
        source["current"].pop("value") == f"${{{needed['name']}}}" == source["current"].pop("text")
    )
    provisioned = deepcopy(dashboards()[uid])
    for name in ("text", "value"):
        del provisioned["templating"]["list"][0]["current"][name]
    assert exported == provisioned
    used = {("panel", panel["type"]) for panel in panels(provisioned)}
    assert {(each["type"], each["id"]) for each in required} == {
        *used, ("grafana", "grafana"), ("datasource", "prometheus"),
    }  # fmt: skip
    assert all({"name", "version"} <= each.keys() for each in required)


def test_committed_panels_link_only_to_dashboards() -> None:
    for uid, panel in all_panels():
        for link in panel["links"]:
            assert link["url"].startswith("/d/mm2slo-"), uid


def test_links_carry_selected_values_with_odd_names() -> None:
    assert len(ADDRESSES) > 20
    for uid, address in sorted(ADDRESSES):
        if address.startswith("https://"):
            assert address.startswith("https://git.example/runbooks/MM2")
            assert (ROOT / "docs" / "runbooks" / address.rpartition("/")[2]).is_file()
        else:
            check_dashboard_link(uid, address)


def check_dashboard_link(uid: str, address: str) -> None:
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


def test_flow_column_links_to_flow_dashboard() -> None:
    found = load_for_config(load_config(CONFIG))["mm2slo-overview"]
    [table] = [each for each in panels(found) if each["title"] == "Flow status"]
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


def test_state_has_same_colour_everywhere() -> None:
    wanted = {state.text: state.colour.value for state in (*FLOW_STATES, *CONNECT_STATES)}
    seen = set()
    for _, panel in all_panels():
        defaults = panel["fieldConfig"]["defaults"]
        mapped = [*defaults.get("mappings", [])]
        for override in panel["fieldConfig"]["overrides"]:
            for entry in override["properties"]:
                if entry["id"] == "mappings":
                    mapped += entry["value"]
                name = override["matcher"]["options"]
                if entry["id"] == "color" and name in wanted:
                    assert entry["value"]["fixedColor"] == wanted[name]
        for mapping in (each for each in mapped if each["type"] == "value"):
            for option in mapping["options"].values():
                if option["text"] in wanted:
                    seen.add(option["text"])
                    assert option["color"] == wanted[option["text"]]
    assert seen == set(wanted)


def test_threshold_colours_are_in_palette() -> None:
    palette = {colour.value for colour in Colour}
    used = {
        step["color"]
        for _, panel in all_panels()
        for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    }
    assert used <= palette


def test_lines_are_distinct_from_each_other_and_from_colours_with_a_meaning() -> None:
    meanings = [each.value for each in Colour if each is not Colour.NEUTRAL]
    for line, other in itertools.combinations((*LINES, *meanings), 2):
        if line in LINES:
            assert math.dist(oklab(line), oklab(other)) > 0.09, (line, other)


def test_four_configured_flows_have_lines_of_four_colours_on_every_dashboard() -> None:
    names = ("us->eu", "eu->us", "us->ap", "ap->us")
    flows = ", ".join(f"{{flow: {each}}}" for each in names)
    text = CONFIG.replace("[{flow: us->eu}]", f"[{flows}]").replace(
        "flows:", '  ap: {bootstrap_servers: "ap:9092"}\nflows:'
    )
    wanted = dict(zip(names, LINES, strict=False))
    charts = [
        panel
        for board in load_for_config(load_config(text)).values()
        for panel in panels(board)
        if panel["type"] == "timeseries"
        and {each["legendFormat"] for each in panel["targets"]} == {"{{flow}}"}
    ]
    assert len(charts) > 4
    for panel in charts:
        assert {
            each["matcher"]["options"]: each["properties"][0]["value"]["fixedColor"]
            for each in panel["fieldConfig"]["overrides"]
        } == wanted


def oklab(colour: str) -> tuple[float, float, float]:
    """Coordinates with distances as one sees them: https://bottosson.github.io/posts/oklab ."""
    shares = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    r, g, b = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares)
    long = math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b)
    medium = math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b)
    short = math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def test_panels_have_text_for_no_data() -> None:
    for uid, panel in all_panels():
        assert len(panel["fieldConfig"]["defaults"]["noValue"]) > 10, (uid, panel["title"])


def test_provisioning_files_have_dashboards_and_data_sources() -> None:
    found = generate_files(load_config(CONFIG))
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


def test_config_maps_contain_dashboard_files() -> None:
    found = generated_files()
    maps = list(yaml.load_all(found[CONFIG_MAPS], yaml.CSafeLoader))
    for each in maps:
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        [(key, text)] = each["data"].items()
        assert text == found[f"{DASHBOARD_FOLDER}/{key}"]
    resources = list(yaml.safe_load_all(found[OPERATOR]))
    assert [each["spec"]["configMapRef"] for each in resources] == [
        {"name": each["metadata"]["name"], "key": next(iter(each["data"]))} for each in maps
    ]
    assert len(resources) == len(set(DashboardUid))


def test_dashboards_have_current_schema_version_and_short_numbers() -> None:
    for name, text in generated_files().items():
        if name.startswith(DASHBOARD_FOLDER):
            assert json.loads(text)["schemaVersion"] == 39
            assert "99999999" not in text.replace("1e-09", "")
