"""How figures look, unit, bounds in the colours of the palette and range, and where panels lead.

What is expected is written by hand in the folder beside, for objectives that all differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pytest
import yaml
from dashed import Json, of, panels

from mm2slo_core.config import load_config
from mm2slo_dashboards.colours import Colour

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIG: Final = """\
clusters:
  us: {bootstrap_servers: "us:9092"}
  eu: {bootstrap_servers: "eu:9092"}
flows:
  - flow_config: us->eu
    freshness: [{threshold: 20s}]
    canary_config: {latency_tiers: [5s, 30s], deadline: 40s}
    readiness: {max_redelivery_records: 77, max_checkpoint_lag_records: 66}
    checkpoint_interval: 13s
slo_config: {window: 14d}
alerting_config: {links: {runbook: https://git.example}}
"""
EXPECTED: Final[dict[str, dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "answers" / "looks.yaml").read_text(encoding="utf-8")
)
BOARDS: Final = of(load_config(CONFIG))


def steps(found: list[Json]) -> str:
    """As in `GOOD 20:BAD`."""
    names = [Colour(each["color"]).name for each in found]
    return " ".join(
        name if each["value"] is None else f"{each['value']:g}:{name}"
        for name, each in zip(names, found, strict=True)
    )


def options(mappings: list[Json]) -> str:
    """As in `0=not ready`."""
    return ", ".join(
        f"{code}={option['text']}" for each in mappings for code, option in each["options"].items()
    )


def look(panel: Json) -> Iterator[str]:
    defaults = panel["fieldConfig"]["defaults"]
    yield panel["type"]
    yield panel["options"]["yAxis"]["unit"] if panel["type"] == "heatmap" else defaults["unit"]
    if panel["type"] not in {"table", "state-timeline", "heatmap"}:
        yield steps(defaults["thresholds"]["steps"])
    yield from (f"{key}={defaults[key]:g}" for key in ("min", "max", "decimals") if key in defaults)
    if defaults.get("mappings"):
        yield options(defaults["mappings"])
    sort = panel["options"].get("sortBy", [])
    if sort:
        yield "by " + ", ".join(f"{'-' * each['desc']}{each['displayName']}" for each in sort)
    if defaults.get("custom", {}).get("stacking", {}).get("mode") == "normal":
        yield "stacked"
    to = (urlsplit(each["url"]).path.rpartition("/")[2] for each in panel["links"])
    yield "to " + ", ".join(each.removesuffix(".md") for each in to)


def of_one(override: Json) -> Iterator[str]:
    """What an override says of a column or a series, without its links."""
    for each in override["properties"]:
        match each["id"], each["value"]:
            case "thresholds", value:
                yield steps(value["steps"])
            case "mappings", value:
                yield options(value)
            case "color", {"fixedColor": colour}:
                yield Colour(colour).name
            case "unit" | "decimals", value:
                yield f"{value}"


def looks(panel: Json) -> Any:
    whole = " | ".join(look(panel))
    named = {
        override["matcher"]["options"]: " | ".join(of_one(override))
        for override in panel["fieldConfig"]["overrides"]
    }
    kept = {name: text for name, text in named.items() if text}
    return {"": whole, **kept} if kept else whole


def test_a_figure_is_that_of_now_and_a_line_is_a_course() -> None:
    for found in BOARDS.values():
        for panel in panels(found):
            now = panel["type"] in {"stat", "table", "bargauge"}
            assert {target["instant"] for target in panel["targets"]} == {now}, panel["title"]
            assert {target["range"] for target in panel["targets"]} <= {not now}, panel["title"]
            reduced = panel["options"].get("reduceOptions")
            assert reduced is None or reduced["calcs"] == ["lastNotNull"]


@pytest.mark.parametrize("uid", BOARDS)
def test_figures_look_as_written(uid: str) -> None:
    assert {panel["title"]: looks(panel) for panel in panels(BOARDS[uid])} == EXPECTED[uid]
