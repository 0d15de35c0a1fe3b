"""Every generated file of a configuration: its place and its text.

Without a configuration the thresholds are those of the default objectives: those files are
committed in `dashboards/generated` and show any flow of any exporter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.config.alerting import AlertingConfig
from mm2slo_core.errors import UserError
from mm2slo_dashboards.boards import boards
from mm2slo_dashboards.checking import unknown
from mm2slo_dashboards.grafana.text import text
from mm2slo_dashboards.limits import limits
from mm2slo_dashboards.links import Addresses, Links
from mm2slo_dashboards.provisioning import (
    config_maps,
    data_sources,
    operator_resources,
    provider,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.config import Config
    from mm2slo_dashboards.model import Board

DASHBOARDS: Final = "grafana/dashboards"
PROVIDER: Final = "grafana/provisioning/dashboards/mm2slo.yaml"
DATA_SOURCES: Final = "grafana/provisioning/datasources/mm2slo.yaml"
CONFIG_MAPS: Final = "kubernetes/mm2slo-dashboards.configmaps.yaml"
OPERATOR: Final = "kubernetes/mm2slo-dashboards.grafanadashboards.yaml"


def generated(config: Config | None = None) -> dict[str, str]:
    """The text of each file by its path in the folder of generated files.

    Raises UserError when a query names a series that nobody publishes.
    """
    alerting = AlertingConfig() if config is None else config.alerting
    all_boards = described(config)
    outside = Addresses(runbook=alerting.links.runbook, report=alerting.links.report)
    links = Links(all_boards, outside)
    texts = {board.identity.value: text(board, links) for board in all_boards}
    return {
        **{f"{DASHBOARDS}/{uid}.json": found for uid, found in texts.items()},
        PROVIDER: provider(),
        DATA_SOURCES: data_sources(alerting.links.prometheus, alerting.links.alertmanager),
        CONFIG_MAPS: config_maps(texts),
        OPERATOR: operator_resources(tuple(texts)),
    }


def described(config: Config | None = None) -> Sequence[Board]:
    """The boards of a configuration, their queries checked; UserError as `generated`."""
    alerting = AlertingConfig() if config is None else config.alerting
    found = boards(limits(config), alerting.exporter_job)
    if wrong := unknown(found):
        raise UserError(
            f"{wrong[0]} ({len(wrong)} such in all); expected names of docs/metrics.md and "
            "docs/rules.md"
        )
    return found
