"""docs/migration.md: each metric of another exporter has a counterpart here, or a reason."""

import re
from collections import Counter
from pathlib import Path

import pytest

from mm2slo_core.catalogue import ALL

PAGE = (Path(__file__).parents[3] / "docs" / "migration.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| (.+?) \|(.*)\|$", PAGE, re.MULTILINE)
OURS = {name for metric in ALL for name in (metric.name, *metric.sample_names)}


def test_page_lists_all_metrics_of_the_exporters() -> None:
    prefixes = {
        "kminion": "kminion_",
        "lag exporter": r"kafka_(consumergroup_group|partition|\w+_ms)",
    }
    found = Counter(
        next(
            (name for name, prefix in prefixes.items() if re.match(prefix, each)), "kafka_exporter"
        )
        for each, *_ in ROWS
    )
    # Their definitions in prometheus/ and e2e/, Metrics.scala and kafka_exporter.go.
    assert found == {"lag exporter": 10, "kminion": 24 + 10, "kafka_exporter": 16}
    assert len({name for name, *_ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("theirs", "here", "remark"), ROWS)
def test_metric_has_a_counterpart_or_a_reason(theirs: str, here: str, remark: str) -> None:
    assert "mm2_" in here if here != "–" else len(remark.strip()) > 10, theirs  # noqa: RUF001


def test_every_metric_of_ours_is_in_the_catalogue() -> None:
    named = set(re.findall(r"\bmm2_\w+", PAGE))
    assert len(named) > 20
    assert named - OURS == set()
