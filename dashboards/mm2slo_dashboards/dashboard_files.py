"""The generated files of a configuration: dashboards and their provisioning.

Without a configuration thresholds follow the default objectives; those files are committed in
`dashboards/generated` and show any flow of any exporter. Every series that a query reads must be
published; an unknown one fails generation. Dashboards are provisioned by Grafana's own files, by a
sidecar, or by Grafana's operator; the data source is a variable.
"""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import indent
from typing import Any, Final

from mm2slo_core.catalogue import ALL, NAMESPACED
from mm2slo_core.catalogue.prometheus_series import ALERTS, ALERTS_FOR_STATE, EXTERNAL, RECORDED
from mm2slo_core.catalogue.promql import add_matcher, equal
from mm2slo_core.catalogue.service_metrics import REPORT_GROUPS
from mm2slo_core.config.alerting_config import AlertingConfig
from mm2slo_core.config.config_model import Config
from mm2slo_core.file_syntax import dump_yaml
from mm2slo_core.user_errors import UserError
from mm2slo_dashboards import (
    audit_dashboard,
    failover_dashboard,
    fleet_dashboard,
    flow_dashboard,
    pipeline_dashboard,
    slo_dashboard,
)
from mm2slo_dashboards.dashboard_model import Dashboard
from mm2slo_dashboards.grafana_json import DashboardLinks, render_dashboard
from mm2slo_dashboards.panel_definitions import ObjectiveLimits, collect_limits

DASHBOARD_FOLDER: Final = "grafana/dashboards"
PROVIDER: Final = "grafana/provisioning/dashboards/mm2slo.yaml"
DATA_SOURCES: Final = "grafana/provisioning/datasources/mm2slo.yaml"
CONFIG_MAPS: Final = "kubernetes/mm2slo-dashboards.configmaps.yaml"
OPERATOR: Final = "kubernetes/mm2slo-dashboards.grafanadashboards.yaml"


def generate_files(config: Config | None = None) -> dict[str, str]:
    """The content of each file by its path in the output folder.

    Raises UserError when a query reads an unknown series.
    """
    alerting = AlertingConfig() if config is None else config.alerting
    dashboards = build_dashboards(config)
    links = DashboardLinks(dashboards, alerting.links)
    texts = {each.uid.value: render_dashboard(each, links) for each in dashboards}
    if alerting.namespace is not None:
        texts = {
            uid: board_text(select_namespace(json.loads(text), alerting.namespace))
            for uid, text in texts.items()
        }
    return {
        **{f"{DASHBOARD_FOLDER}/{uid}.json": text for uid, text in texts.items()},
        PROVIDER: render_provider(),
        DATA_SOURCES: render_data_sources(alerting.links.prometheus, alerting.links.alertmanager),
        CONFIG_MAPS: render_config_maps(texts),
        OPERATOR: render_operator_resources(tuple(texts)),
    }


def board_text(board: Any) -> str:
    """The file of a dashboard in Grafana's JSON model."""
    return json.dumps(board, indent=2, ensure_ascii=False) + "\n"


def select_namespace(value: Any, namespace: str, key: str = "") -> Any:
    """A part of a dashboard whose queries select the series of *namespace*."""
    if isinstance(value, dict):
        return {name: select_namespace(each, namespace, name) for name, each in value.items()}
    if isinstance(value, list):
        return [select_namespace(each, namespace, key) for each in value]
    if isinstance(value, str) and key in {"expr", "query"}:
        return add_matcher(value, NAMESPACED, equal("namespace", namespace))
    return value


def build_dashboards(config: Config | None = None) -> Sequence[Dashboard]:
    """The dashboards of a configuration, their series checked; UserError as in `generate_files`."""
    alerting = AlertingConfig() if config is None else config.alerting
    found = build_all(collect_limits(config), alerting.exporter_job)
    if problems := find_unknown_series(found):
        raise UserError(
            f"{problems[0]} ({len(problems)} in total); expected a series of docs/metrics.md or "
            "docs/rules.md"
        )
    return found


def build_all(limits: ObjectiveLimits, exporter_job: str) -> tuple[Dashboard, ...]:
    """Every dashboard; exporters are scraped under the job *exporter_job*."""
    return (
        fleet_dashboard.build(limits),
        flow_dashboard.build(limits),
        failover_dashboard.build(limits),
        audit_dashboard.build(limits),
        slo_dashboard.build(limits),
        pipeline_dashboard.build(exporter_job),
    )


def render_export(dashboard: str) -> str:
    """A rendered dashboard as Grafana exports it for other instances, which grafana.com requires.

    An import asks for the data source and puts its uid in place of `${DS_PROMETHEUS}` in any value
    (Grafana's DashTemplateEvaluator): here it is the selected value of the variable.
    """
    board = json.loads(dashboard)
    types = sorted({panel["type"] for panel in board["panels"]} - {"row"})
    board["templating"]["list"][0]["current"] = {"selected": True, "text": _INPUT, "value": _INPUT}
    exported = {
        "__inputs": [
            {
                "name": _INPUT.strip("${}"),
                "label": "Prometheus",
                "description": "",
                "type": "datasource",
                "pluginId": "prometheus",
                "pluginName": "Prometheus",
            }
        ],
        "__elements": {},
        "__requires": [
            {"type": "grafana", "id": "grafana", "name": "Grafana", "version": "11.0.0"},
            {"type": "datasource", "id": "prometheus", "name": "Prometheus", "version": "1.0.0"},
            *({"type": "panel", "id": each, "name": PANELS[each], "version": ""} for each in types),
        ],
        "id": None,
        **board,
    }
    return board_text(exported)


_INPUT: Final = "${DS_PROMETHEUS}"
PANELS: Final = {
    "bargauge": "Bar gauge",
    "stat": "Stat",
    "state-timeline": "State timeline",
    "table": "Table",
    "timeseries": "Time series",
}
"""Grafana's names of its plugins, by id."""

HEADER: Final = "# Generated by `mm2slo dashboards generate`; do not edit.\n"
FOLDER: Final = "MirrorMaker 2"
FOLDER_UID: Final = "mm2slo"

FILES: Final = "/var/lib/grafana/dashboards/mm2slo"
"""Where the provider looks for the JSON files."""
PROMETHEUS_UID: Final = "mm2slo-prometheus"
ALERTMANAGER_UID: Final = "mm2slo-alertmanager"

SCRAPE_INTERVAL: Final = "15s"
"""As in the shipped Prometheus configuration; `$__rate_interval` is four of it."""
_PROMETHEUS: Final = "http://127.0.0.1:9090"
_ALERTMANAGER: Final = "http://127.0.0.1:9093"


def render_provider() -> str:
    """The file for `provisioning/dashboards`; edits in the UI are not allowed."""
    return dump_yaml(
        {
            "apiVersion": 1,
            "providers": [
                {
                    "name": "mm2slo",
                    "type": "file",
                    "folder": FOLDER,
                    "folderUid": FOLDER_UID,
                    "disableDeletion": True,
                    "allowUiUpdates": False,
                    "updateIntervalSeconds": 30,
                    "options": {"path": FILES},
                }
            ],
        },
        HEADER,
    )


def render_data_sources(prometheus: str | None, alertmanager: str | None) -> str:
    """The file for `provisioning/datasources`, with fixed uids; addresses as configured.

    Neither is set as Grafana's default, so an existing default stays.
    """
    common = {"access": "proxy", "isDefault": False, "editable": False}
    return dump_yaml(
        {
            "apiVersion": 1,
            "datasources": [
                {
                    "name": "mm2slo Prometheus",
                    "uid": PROMETHEUS_UID,
                    "type": "prometheus",
                    "url": prometheus or _PROMETHEUS,
                    **common,
                    "jsonData": {
                        "httpMethod": "POST",
                        "prometheusType": "Prometheus",
                        "timeInterval": SCRAPE_INTERVAL,
                    },
                },
                {
                    "name": "mm2slo Alertmanager",
                    "uid": ALERTMANAGER_UID,
                    "type": "alertmanager",
                    "url": alertmanager or _ALERTMANAGER,
                    **common,
                    "jsonData": {"implementation": "prometheus"},
                },
            ],
        },
        HEADER,
    )


def render_config_maps(dashboards: Mapping[str, str]) -> str:
    """A ConfigMap per dashboard, by uid, with the label that the sidecar looks for.

    The JSON is indented as it is, since a YAML writer takes seconds for it.
    """
    return HEADER + "---\n".join(_config_map(uid, text) for uid, text in dashboards.items())


def _config_map(uid: str, text: str) -> str:
    head = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": uid,
            "labels": {"app.kubernetes.io/name": "mm2slo", "grafana_dashboard": "1"},
            "annotations": {"grafana_folder": FOLDER},
        },
    }
    return f"{dump_yaml(head)}data:\n  {uid}.json: |\n{indent(text, '    ')}"


def render_operator_resources(uids: tuple[str, ...]) -> str:
    """A `GrafanaDashboard` for each of the ConfigMaps.

    The operator's examples label their Grafana `dashboards: grafana`.
    """
    resources = (
        {
            "apiVersion": "grafana.integreatly.org/v1beta1",
            "kind": "GrafanaDashboard",
            "metadata": {"name": uid, "labels": {"app.kubernetes.io/name": "mm2slo"}},
            "spec": {
                "instanceSelector": {"matchLabels": {"dashboards": "grafana"}},
                "folder": FOLDER,
                "configMapRef": {"name": uid, "key": f"{uid}.json"},
            },
        }
        for uid in uids
    )
    return HEADER + "---\n".join(map(dump_yaml, resources))


PUBLISHED: Final = frozenset(
    (
        *(
            name
            for metric in (*ALL, *EXTERNAL, *itertools.chain(*REPORT_GROUPS.values()))
            for name in metric.sample_names
        ),
        *(series.name for series in RECORDED),
        ALERTS,
        ALERTS_FOR_STATE,
    )
)
"""Every series name that a query may use."""
_STRINGS: Final = re.compile(r"`[^`]*`|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")

_LABELS: Final = re.compile(
    r"\{[^}]*\}|\[[^\]]*\]|\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)"
)
_NAMES: Final = re.compile(r"(?<![\w:.$])[A-Za-z_:][\w:]*(?!\s*\()(?![\w:])")

_KEYWORDS: Final = frozenset(
    {"and", "or", "unless", "bool", "offset", "by", "without", "inf", "nan"}
)


def find_series(expression: str) -> Iterator[str]:
    """The names of the series that a PromQL expression reads."""
    bare = _LABELS.sub(" ", _STRINGS.sub('""', expression))
    for found in _NAMES.finditer(bare):
        if found[0].lower() not in _KEYWORDS:
            yield found[0]


def find_unknown_series(dashboards: Iterable[Dashboard]) -> tuple[str, ...]:
    """A message for each series in the queries of *dashboards* that nothing publishes."""
    return tuple(
        f"{where} reads {name!r}, an unknown series"
        for dashboard in dashboards
        for where, expression in _expressions(dashboard)
        for name in find_series(expression)
        if name not in PUBLISHED
    )


def _expressions(dashboard: Dashboard) -> Iterator[tuple[str, str]]:
    for panel in dashboard.panels:
        for vector in panel.vectors:
            yield f"panel {panel.title!r} of {dashboard.uid}", vector.text
    for variable in dashboard.variables:
        yield f"variable {variable.name!r} of {dashboard.uid}", variable.series.text
    for annotation in dashboard.annotations:
        yield f"annotation {annotation.title!r} of {dashboard.uid}", annotation.vector.text
