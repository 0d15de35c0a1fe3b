"""A flow recovers from a stop while its lag is above its own freshness threshold and falling."""

from pathlib import Path

from promtool import evaluate, needs_promtool

from mm2slo_alerts.alert_files import configured_alerts
from mm2slo_core.catalogue.prometheus_series import FLOW_RECOVERING
from mm2slo_core.config.config_loader import load_config

FLOWS = ("us->eu", "eu->us")
CONFIG = """\
clusters:
  us: {bootstrap_servers: "us:9092"}
  eu: {bootstrap_servers: "eu:9092"}
flows:
  - flow: us->eu
    freshness: [{name: bulk, topics: [bulk], threshold: 15m}, {name: default, threshold: 5m}]
  - flow: eu->us
"""


@needs_promtool
def test_recovering_ends_at_the_smallest_freshness_threshold_of_the_flow(tmp_path: Path) -> None:
    flows = {flow: f'flow="{flow}", source="{flow[:2]}", target="{flow[4:]}"' for flow in FLOWS}
    recovering = {flow: f"{FLOW_RECOVERING.name}{{{labels}}}" for flow, labels in flows.items()}
    (group,) = (
        each for each in configured_alerts(load_config(CONFIG)) if each.name == "mm2slo-causes-flow"
    )
    states = {
        f'mm2_flow_state{{{labels}, state="{state}"}}': values
        for labels in flows.values()
        for state, values in (("stopped", "1x9 0x70"), ("running", "0x9 1x70"))
    }
    # 600 s at 5 minutes, and 20 s less each minute.
    lags = {f"mm2_flow_lag_seconds{{{labels}}}": "600x9 600-10x60" for labels in flows.values()}
    evaluate(
        tmp_path,
        (group,),
        states | lags,
        {
            (FLOW_RECOVERING.name, "17m"): dict.fromkeys(recovering.values(), 360.0),
            (FLOW_RECOVERING.name, "20m"): {recovering["eu->us"]: 300.0},
            (FLOW_RECOVERING.name, "31m"): {recovering["eu->us"]: 80.0},
            (FLOW_RECOVERING.name, "32m"): {},
        },
        interval="30s",
    )
