"""Units, thresholds, ranges and links of panels.

The expected ones are hand-written in `answers/field_config.yaml`, for objectives that all differ.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import yaml
from generated_dashboards import Json, load_for_config, panels

from mm2slo_core.config.config_loader import load_config
from mm2slo_dashboards.dashboard_model import LINES, Colour

CONFIG: Final = """\
clusters:
  us: {bootstrap_servers: "us:9092"}
  eu: {bootstrap_servers: "eu:9092"}
flows:
  - flow: us->eu
    freshness: [{threshold: 20s}]
    canary: {latency_tiers: [5s, 30s], deadline: 40s}
    readiness: {max_redelivery_records: 77, max_checkpoint_lag_records: 66}
    checkpoint_interval: 13s
slo: {window: 14d}
alerting: {links: {runbook: https://git.example}}
"""
EXPECTED: Final[dict[str, dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "answers" / "field_config.yaml").read_text(encoding="utf-8")
)
BOARDS: Final = load_for_config(load_config(CONFIG))


def describe_thresholds(found: list[Json]) -> str:
    """As in `GOOD 20:BAD`."""
    names = [Colour(each["color"]).name for each in found]
    return " ".join(
        name if each["value"] is None else f"{each['value']:g}:{name}"
        for name, each in zip(names, found, strict=True)
    )


def describe_mappings(mappings: list[Json]) -> str:
    """As in `0=blocked`."""
    return ", ".join(
        f"{code}={option['text']}"
        for each in mappings
        for code, option in (
            [("below 0", each["options"]["result"])]
            if each["type"] == "range"
            else each["options"].items()
        )
    )


def describe_panel(panel: Json) -> Iterator[str]:
    defaults = panel["fieldConfig"]["defaults"]
    yield panel["type"]
    yield defaults["unit"]
    if panel["type"] not in {"table", "state-timeline"}:
        yield describe_thresholds(defaults["thresholds"]["steps"])
    yield from (f"{key}={defaults[key]:g}" for key in ("min", "max", "decimals") if key in defaults)
    if defaults.get("mappings"):
        yield describe_mappings(defaults["mappings"])
    sort = panel["options"].get("sortBy", [])
    if sort:
        yield "by " + ", ".join(f"{'-' * each['desc']}{each['displayName']}" for each in sort)
    if defaults.get("custom", {}).get("stacking", {}).get("mode") == "normal":
        yield "stacked"
    to = (urlsplit(each["url"]).path.rpartition("/")[2] for each in panel["links"])
    yield "to " + ", ".join(each.removesuffix(".md") for each in to)


def describe_override(override: Json) -> Iterator[str]:
    """An override of a column or series, without its links."""
    for each in override["properties"]:
        match each["id"], each["value"]:
            case "thresholds", value:
                yield describe_thresholds(value["steps"])
            case "mappings", value:
                yield describe_mappings(value)
            case "color", {"fixedColor": colour}:
                yield f"line {LINES.index(colour)}" if colour in LINES else Colour(colour).name
            case "unit" | "decimals", value:
                yield f"{value}"


def describe(panel: Json) -> Any:
    whole = " | ".join(describe_panel(panel))
    named = {
        override["matcher"]["options"]: " | ".join(describe_override(override))
        for override in panel["fieldConfig"]["overrides"]
    }
    kept = {name: text for name, text in named.items() if text}
    return {"": whole, **kept} if kept else whole


def test_single_values_use_instant_queries_and_charts_range_queries() -> None:
    for found in BOARDS.values():
        for panel in panels(found):
            instant = panel["type"] in {"stat", "table", "bargauge"}
            assert {target["instant"] for target in panel["targets"]} == {instant}, panel["title"]
            assert {target["range"] for target in panel["targets"]} <= {not instant}, panel["title"]
            reduced = panel["options"].get("reduceOptions")
            assert reduced is None or reduced["calcs"] == ["lastNotNull"]


@pytest.mark.parametrize("uid", BOARDS)
def test_field_config_matches_expected(uid: str) -> None:
    assert {panel["title"]: describe(panel) for panel in panels(BOARDS[uid])} == EXPECTED[uid]
