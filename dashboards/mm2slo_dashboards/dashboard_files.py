"""The generated files of a configuration: paths and contents.

Without a configuration thresholds follow the default objectives; those files are committed in
`dashboards/generated` and show any flow of any exporter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.config.alerting_config import AlertingConfig
from mm2slo_core.user_errors import UserError
from mm2slo_dashboards.boards import build_all
from mm2slo_dashboards.dashboard_links import Addresses, Links
from mm2slo_dashboards.grafana.dashboard_json import render_dashboard
from mm2slo_dashboards.objective_limits import collect_limits
from mm2slo_dashboards.provisioning import (
    render_config_maps,
    render_data_sources,
    render_operator_resources,
    render_provider,
)
from mm2slo_dashboards.series_check import find_unknown_series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.config import Config
    from mm2slo_dashboards.dashboard_model import Dashboard

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
    addresses = Addresses(runbook=alerting.links.runbook, report=alerting.links.report)
    links = Links(dashboards, addresses)
    texts = {each.uid.value: render_dashboard(each, links) for each in dashboards}
    return {
        **{f"{DASHBOARD_FOLDER}/{uid}.json": text for uid, text in texts.items()},
        PROVIDER: render_provider(),
        DATA_SOURCES: render_data_sources(alerting.links.prometheus, alerting.links.alertmanager),
        CONFIG_MAPS: render_config_maps(texts),
        OPERATOR: render_operator_resources(tuple(texts)),
    }


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
