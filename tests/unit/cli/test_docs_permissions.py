"""The generated page of permissions."""

import pytest

from mm2slo_cli import docs
from mm2slo_core.indicators.canary_rules import CanaryRecord
from mm2slo_core.records.mirror_records import Heartbeat
from mm2slo_kafka.cluster_inspection import CLOCK_TOPIC


@pytest.mark.parametrize(
    "resource",
    [
        "`heartbeats`",
        "the canary topic (`mm2slo.canary`)",
        "`mm2slo.watermarks.internal`",
        "`mm2slo.arrivals.internal`",
        "`mm2slo.state.internal`",
        "group `mm2slo.leader.*`",
        f"`{CLOCK_TOPIC}`",
    ],
)
def test_permissions_page_lists_each_write(resource: str) -> None:
    section = docs.render_permissions().partition("## Writes\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith(f"| {resource} |")]
    assert len(rows) == 1


def test_permissions_page_names_the_alias_of_canaries_that_mask_heartbeat_monitors() -> None:
    key, value = CanaryRecord("pod", "us->eu", 1, 1_000, 0).heartbeat("us")
    beat = Heartbeat.decode(key, value)
    assert isinstance(beat, Heartbeat)
    prefix = beat.source_alias.removesuffix("pod/us->eu")
    page = " ".join(docs.render_permissions().split())
    assert "Canaries mask other monitors of heartbeats" in page
    assert f"source cluster alias starts with `{prefix}`" in page
