"""A stop of 30 minutes and 40 minutes of catching up, in production times.

Which alerts fire, evaluated by promtool. Canaries are on time at once after the stop; data
freshness and the fastest latency tier are bad while the flow is behind. The objective of that tier
makes tickets only.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from promtool import evaluate, needs_promtool

from mm2slo_alerts import recording_rules
from mm2slo_alerts.alert_files import alert_groups
from mm2slo_alerts.alert_rules import PRODUCTION, AlertRule, Group, Rule
from mm2slo_core.config.config_model import default_objective_rules

AVAILABLE, FRESH, FAST_TIER = "availability", "data_freshness", "latency"
TIERS: Final = {AVAILABLE: "all", FRESH: "default", FAST_TIER: "10s"}
STOP, RESUME, CAUGHT_UP, END = 60, 90, 130, 540
LABELS: Final = 'flow="us->eu", source="us", target="eu"'
SCRAPED: Final = 'job="mm2slo", instance="exporter:9469"'
STOPPED = "MM2FlowStopped"
STOPPED_ONLY: Final = {(STOPPED, "", "")}
FIRING: Final = {
    STOP: set(),
    **dict.fromkeys(range(STOP + 3, RESUME + 3), STOPPED_ONLY),
    # It catches up: canaries arrive on time, data is old. Then the short windows forget the stop,
    # and the windows of tickets hold it for two and six hours.
    **{minute: set() for minute in range(RESUME + 4, CAUGHT_UP + 20)},
    **{minute: set() for minute in (170, 230, 245, 255, 300, 400, 480, 490, 530)},
}
"""Alerts by minute: name, indicator and window."""


def inputs() -> dict[str, str]:
    """One sample per minute, with 60 canaries and 8 slices."""
    found = {
        f"up{{{SCRAPED}}}": f"1x{END}",
        f'mm2_flow_state{{{LABELS}, state="stopped", {SCRAPED}}}': f"0x{STOP} 1x29 0x{END}",
        f'mm2_flow_state{{{LABELS}, state="running", {SCRAPED}}}': f"1x{STOP} 0x29 1x{END}",
        f"mm2_flow_lag_seconds{{{LABELS}, {SCRAPED}}}": f"0x{STOP} 60+60x29 1755-45x39 0x{END}",
        f"mm2_flow_observed_timestamp_seconds{{{LABELS}, {SCRAPED}}}": f"0+60x{END}",
    }
    good = {
        AVAILABLE: "0+60x60 3600x29 3660+60x449",
        FRESH: "0+8x60 480x69 488+8x409",
        FAST_TIER: "0+60x60 3600x69 3660+60x409",
    }
    for sli, tier in TIERS.items():
        labels = f'{LABELS}, sli="{sli}", tier="{tier}", {SCRAPED}'
        found[f"mm2_sli_events_total{{{labels}}}"] = f"0+{8 if sli == FRESH else 60}x{END}"
        found[f"mm2_sli_good_events_total{{{labels}}}"] = good[sli]
    return found


def without_annotations(group: Group) -> Iterator[Rule]:
    """Queries in annotations would only slow the test."""
    for rule in group.rules:
        yield replace(rule, annotations={}) if isinstance(rule, AlertRule) else rule


@needs_promtool
def test_stop_and_catching_up_fire_expected_alerts(tmp_path: Path) -> None:
    kept = ("alertname", "sli", "window")
    query = (
        f'count by ({", ".join(kept)}) (ALERTS{{alertstate="firing", '
        'alertname!~"MM2Watchdog|MM2ErrorBudgetExhausted"})'
    )
    expected = {
        (query, f"{minute}m"): {
            "{" + ", ".join(f'{k}="{v}"' for k, v in zip(kept, alert, strict=True) if v) + "}": 1.0
            for alert in alerts
        }
        for minute, alerts in FIRING.items()
    }
    groups = (
        *recording_rules.recording_groups(default_objective_rules(), PRODUCTION),
        *(replace(each, rules=tuple(without_annotations(each))) for each in alert_groups()),
    )
    evaluate(tmp_path, groups, inputs(), expected, interval="1m")
