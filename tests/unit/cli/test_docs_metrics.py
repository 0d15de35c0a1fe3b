"""The generated metrics page."""

from pathlib import Path

import pytest

from mm2slo_cli import docs
from mm2slo_core.catalogue import ALL, BY_NAME
from mm2slo_core.catalogue.service_metrics import LOGSHIP_GROUPS, REPORT_GROUPS

ROOT = Path(__file__).parents[3]


def test_metrics_page_is_current() -> None:
    page = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    assert page == docs.render_metrics(), "run: python -m mm2slo_cli.docs"


def test_metrics_page_has_one_row_per_metric() -> None:
    rows = [line for line in docs.render_metrics().splitlines() if line.startswith("| `")]
    groups = (*REPORT_GROUPS.values(), *LOGSHIP_GROUPS.values())
    reported = [metric for group in groups for metric in group]
    assert [row.split("`")[1] for row in rows] == [metric.name for metric in (*ALL, *reported)]


def row(name: str) -> list[str]:
    found = [line for line in docs.render_metrics().splitlines() if f"| `{name}` |" in line]
    assert len(found) == 1
    return [cell.strip() for cell in found[0].strip("|").split("|")]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        (
            "mm2_retention_headroom_seconds",
            ["gauge", "`topic`, `partition`, `limit`", "partition and topic: smallest"],
        ),
        (
            "mm2_replication_lag_seconds",
            ["gauge", "`topic`, `partition`", "partition: largest; from topic level on"],
        ),
        ("mm2_position_quality", ["gauge", "`topic`, `partition`, `quality`",
                                  "from partition level on"]),
        ("mm2_exporter_series", ["gauge", "none (no flow labels)", ""]),
        ("mm2_heartbeats_received_total", ["counter", "none", ""]),
    ],
)  # fmt: skip
def test_metrics_page_row_shows_labels_and_effect_of_granularity(
    name: str, cells: list[str]
) -> None:
    assert row(name)[1:-1] == cells
    assert row(name)[-1].startswith(BY_NAME[name].help)
