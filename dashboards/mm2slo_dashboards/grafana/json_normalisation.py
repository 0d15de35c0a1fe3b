"""Converts grafanalib's JSON to what Grafana 11 and later write.

grafanalib 0.7.1 writes keys of Grafana 4 to 7: rows and hidden controls of dashboards, heights and
spans of panels, thresholds with an index and the string 'null'. Grafana's migration of such files
differs between releases and is lossy, so these keys are removed. Missing required keys are added,
unknown keys are dropped; schema tests check the result.
"""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

_DASHBOARD: Final = (
    *("annotations", "description", "editable", "graphTooltip", "links", "panels", "refresh"),
    *("schemaVersion", "tags", "templating", "time", "timepicker", "timezone", "title", "uid"),
)
_PANEL: Final = (
    *("datasource", "description", "fieldConfig", "gridPos", "id", "interval", "links"),
    *("maxDataPoints", "options", "targets", "timeFrom", "title", "transformations"),
    *("transparent", "type"),
)
_ROW: Final = ("collapsed", "gridPos", "id", "panels", "title", "type")
_TARGET: Final = ("datasource", "expr", "format", "instant", "legendFormat", "refId")
_VARIABLE: Final = (
    *("allValue", "current", "datasource", "hide", "includeAll", "label", "multi", "name"),
    *("query", "refresh", "sort", "type"),
)
_ALL: Final = {"selected": True, "text": ["All"], "value": ["$__all"]}
_OPTIONS: Final[dict[str, Json]] = {
    "stat": {
        "percentChangeColorMode": "standard",
        "showPercentChange": False,
        "wideLayout": True,
    },
    "table": {"cellHeight": "sm", "footer": {"countRows": False, "reducer": [], "show": False}},
    "timeseries": {},
    "state-timeline": {},
}
"""Default options of each kind of panel that older releases did not have."""


def normalise_dashboard(dashboard: Json) -> Json:
    """*dashboard*, as JSON types, in the current format."""
    found = _only(dashboard, _DASHBOARD)
    found["timepicker"] = {"refresh_intervals": dashboard["timepicker"]["refresh_intervals"]}
    found["panels"] = [_panel(each) for each in dashboard["panels"]]
    found["templating"] = {"list": [_variable(each) for each in dashboard["templating"]["list"]]}
    found["annotations"] = {
        "list": [_with_data_source(each) for each in dashboard["annotations"]["list"]],
    }
    cleaned: Json = _without_nulls(found)
    return cleaned


def _panel(panel: Json) -> Json:
    if panel["type"] == "row":
        return _only(panel, _ROW)
    found = _with_data_source(_only(panel, _PANEL))
    found["targets"] = [_target(each) for each in panel["targets"]]
    found["options"] = {**_OPTIONS.get(panel["type"], {}), **panel["options"]}
    if panel["type"] == "table":
        found["options"].setdefault("frameIndex", 0)
    if "legend" in found["options"]:
        found["options"]["legend"].setdefault("showLegend", True)
        found["options"]["legend"].setdefault("calcs", [])
    if "tooltip" in found["options"]:
        found["options"]["tooltip"].setdefault("sort", "none")
    found["fieldConfig"] = _fields(panel)
    return found


def _fields(panel: Json) -> Json:
    """Thresholds of defaults and overrides, and cell options as of Grafana 10."""
    defaults = dict(panel["fieldConfig"]["defaults"])
    defaults["thresholds"] = _thresholds(defaults["thresholds"])
    if panel["type"] == "table":
        custom = defaults["custom"]
        defaults["custom"] = {
            "align": custom["align"],
            "filterable": custom["filterable"],
            "inspect": False,
        }
        defaults["color"] = {"mode": "fixed", "fixedColor": "text"}
    return {
        "defaults": defaults,
        "overrides": [_override(each) for each in panel["fieldConfig"].get("overrides", [])],
    }


def _override(override: Json) -> Json:
    properties = [
        {**each, "value": _thresholds(each["value"])} if each["id"] == "thresholds" else each
        for each in override["properties"]
    ]
    return {**override, "properties": properties}


def _thresholds(thresholds: Json) -> Json:
    """Colours by value only; the first one applies below every bound."""
    steps = [
        {"color": step["color"], "value": None if n == 0 else step["value"]}
        for n, step in enumerate(thresholds["steps"])
    ]
    return {"mode": thresholds["mode"], "steps": steps}


def _target(target: Json) -> Json:
    found = _with_data_source(_only(target, _TARGET))
    found |= {"editorMode": "code", "range": not target["instant"]}
    return found


def _variable(variable: Json) -> Json:
    found = _with_data_source(_only(variable, _VARIABLE))
    if variable["type"] == "datasource":
        found["current"] = _only(variable["current"], ("selected", "text", "value"))
    else:
        found["current"] = _ALL if variable["includeAll"] else None
    return found


def _with_data_source(owner: Json) -> Json:
    """*owner* with its data source as type and uid."""
    uid = owner.get("datasource")
    if isinstance(uid, str):
        return {**owner, "datasource": {"type": "prometheus", "uid": uid}}
    return owner


def _only(owner: Json, keys: tuple[str, ...]) -> Json:
    return {key: owner[key] for key in keys if key in owner}


def _without_nulls(value: Any) -> Any:
    """*value* without null keys, except a threshold's first value and a range's open start."""
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    if not isinstance(value, dict):
        return value
    bound = value.keys() == {"color", "value"}
    return {
        key: _without_nulls(each)
        for key, each in value.items()
        if each is not None or (bound and key == "value") or key == "from"
    }
