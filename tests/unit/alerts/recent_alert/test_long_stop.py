"""A stop of two hours in production times: which alerts fire, which are delivered.

Both flows stop after a healthy hour and resume in minute 180. `us->eu` works off its backlog in an
hour; `us->ap` only keeps up with new records. Canaries are on time immediately; data freshness and
the fastest latency tier are bad while the flow is behind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest
from inhibitions import delivered
from promtool import evaluate, needs_promtool

from mm2slo_alerts import recording
from mm2slo_alerts.output_files import alert_groups
from mm2slo_alerts.recent_alert import RECENT_ALERTS
from mm2slo_alerts.rule_model import PRODUCTION, AlertRule, Links
from mm2slo_core.config.published_indicators import default_objective_rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mm2slo_alerts.rule_model import Group, Rule

EU, AP = "us->eu", "us->ap"
AVAILABLE, FRESH, FAST_TIER = "availability", "data_freshness", "latency"
TIERS: Final = {AVAILABLE: "all", FRESH: "default", FAST_TIER: "10s"}
STOPPED, CATCHING_UP = "MM2FlowStopped", "MM2CatchingUp"
FAST, STEADY, SLOW, CREEPING = (
    f"MM2ErrorBudgetBurn{pair}" for pair in ("Fast", "Steady", "Slow", "Creeping")
)
SPENT = "MM2ErrorBudgetExhausted"
"""For every budget: the window holds only the hours of this test."""
END = 660

ALL_FIRING = 100
"""Minute by which every alert about the stop fires; the creeping pair is the last."""
SEEN_TO_GAIN = 200
"""By then the lag has fallen for twenty minutes of the half hour of the trend."""
# Last minute in which each alert fires: until its short window holds too few bad events, pages for
# another 5 minutes.
LAST: Final[Mapping[tuple[str, str, str], int]] = {
    (EU, STOPPED, ""): 180,
    (EU, FAST, AVAILABLE): 180 + 4 + 5,
    (EU, STEADY, AVAILABLE): 180 + 29 + 5,
    (EU, SLOW, AVAILABLE): 180 + 120,
    (EU, CREEPING, AVAILABLE): 180 + 360,
    (EU, CATCHING_UP, ""): 239,
    (EU, FAST, FRESH): 240 + 4 + 5,
    (EU, STEADY, FRESH): 240 + 29 + 5,
    (EU, SLOW, FRESH): 240 + 120,
    (EU, CREEPING, FRESH): 240 + 360,
    (EU, SLOW, FAST_TIER): 240 + 120,
    (EU, CREEPING, FAST_TIER): 240 + 360,
    **{(EU, SPENT, sli): END for sli in TIERS},
    (AP, STOPPED, ""): 180,
    (AP, FAST, AVAILABLE): 180 + 4 + 5,
    (AP, STEADY, AVAILABLE): 180 + 29 + 5,
    (AP, SLOW, AVAILABLE): 180 + 120,
    (AP, CREEPING, AVAILABLE): 180 + 360,
    (AP, FAST, FRESH): END,
    (AP, STEADY, FRESH): END,
    (AP, SLOW, FRESH): END,
    (AP, CREEPING, FRESH): END,
    (AP, SLOW, FAST_TIER): END,
    (AP, CREEPING, FAST_TIER): END,
    **{(AP, SPENT, sli): END for sli in TIERS},
}
SPENT_OF_EU: Final = {(EU, SPENT, sli) for sli in TIERS}
# Not close to any of these minutes.
DELIVERED: Final[Mapping[int, set[tuple[str, str, str]]]] = {
    120: {(EU, STOPPED, ""), (AP, STOPPED, "")},
    # Records arrive again; both flows are two hours behind.
    205: set(),
    # Alerts after a stop are inhibited for 45 minutes; after that a flow that does not gain alerts.
    230: {(AP, FAST, FRESH)},
    # us->eu has caught up; the windows still hold the stop.
    280: {(AP, FAST, FRESH)},
    # The slow pair is inhibited for two hours and a quarter after a stop; us->ap is still late.
    353: {(AP, FAST, FRESH), (AP, SLOW, FAST_TIER), (AP, SPENT, FAST_TIER), (AP, SPENT, AVAILABLE)},
    # Exhausted budgets are reported once no event is bad any more.
    420: {(AP, FAST, FRESH), (AP, SLOW, FAST_TIER), (AP, SPENT, FAST_TIER), (AP, SPENT, AVAILABLE)}
    | SPENT_OF_EU,
    # The creeping pair looks back six hours and adds no alert.
    585: {(AP, FAST, FRESH), (AP, SLOW, FAST_TIER), (AP, SPENT, FAST_TIER), (AP, SPENT, AVAILABLE)}
    | SPENT_OF_EU,
    655: {(AP, FAST, FRESH), (AP, SLOW, FAST_TIER), (AP, SPENT, FAST_TIER), (AP, SPENT, AVAILABLE)}
    | SPENT_OF_EU,
}

INPUTS: Final = {'up{job="mm2slo", instance="exporter:9469"}': f"1x{END}"}
SCRAPED = 'job="mm2slo", instance="exporter:9469"'


def of_flow(flow: str) -> str:
    source, _, target = flow.partition("->")
    return f'flow="{flow}", source="{source}", target="{target}"'


def inputs() -> dict[str, str]:
    """One sample per minute, with 60 canaries and 8 slices."""
    found = dict(INPUTS)
    lags = {EU: "0x59 0+60x120 7080-120x59 0x420", AP: "0x59 0+60x120 7200x480"}
    # Good until minute 60, and again from 180, from 240, or never.
    after_stop, after_backlog = "0+60x60 3600x119 3660+60x479", "0+60x60 3600x179 3660+60x419"
    fresh = {EU: "0+8x60 480x179 488+8x419", AP: "0+8x60 480x599"}
    late = {EU: after_backlog, AP: "0+60x60 3600x599"}
    for flow, lag in lags.items():
        found[f"mm2_flow_lag_seconds{{{of_flow(flow)}, {SCRAPED}}}"] = lag
        stopped = f'mm2_flow_state{{{of_flow(flow)}, state="stopped", {SCRAPED}}}'
        found[stopped] = "0x60 1x119 0x480"
        good = {AVAILABLE: after_stop, FRESH: fresh[flow], FAST_TIER: late[flow]}
        for sli, tier in TIERS.items():
            labels = f'{of_flow(flow)}, sli="{sli}", tier="{tier}", {SCRAPED}'
            rate = 8 if sli == FRESH else 60
            found[f"mm2_sli_events_total{{{labels}}}"] = f"0+{rate}x{END}"
            found[f"mm2_sli_good_events_total{{{labels}}}"] = good[sli]
    return found


def rules() -> Iterator[AlertRule]:
    for group in alert_groups(Links()):
        yield from (rule for rule in group.rules if isinstance(rule, AlertRule))


def without_annotations(group: Group) -> Iterator[Rule]:
    """Queries in annotations would only slow the test."""
    for rule in group.rules:
        yield replace(rule, annotations={}) if isinstance(rule, AlertRule) else rule


def firing(minute: int) -> Iterator[dict[str, str]]:
    """Yield the alerts at *minute*, with MM2RecentlyPaged for each."""
    severity = {rule.alert: rule.labels["severity"] for rule in rules()}
    for (flow, name, sli), last in LAST.items():
        source, _, target = flow.partition("->")
        about = {"flow": flow, "source": source, "target": target}
        about |= {"sli": sli, "tier": TIERS[sli]} if sli else {}
        start = SEEN_TO_GAIN if name == CATCHING_UP else ALL_FIRING
        if start <= minute <= last:
            yield {"alertname": name, "severity": severity[name], **about}
        for recent in RECENT_ALERTS:
            if recent.of == name and start <= minute <= last + recent.within / 60:
                yield {
                    "alertname": "MM2RecentlyPaged",
                    "severity": "none",
                    **recent.labels,
                    **{label: about[label] for label in recent.by},
                }


@needs_promtool
@pytest.mark.long
def test_long_stop_fires_expected_alerts(tmp_path: Path) -> None:
    kept = ("alertname", "flow", "sli", "of", "within")
    query = (
        f'count by ({", ".join(kept)}) (ALERTS{{alertstate="firing", alertname!="MM2Watchdog"}})'
    )
    expected = {
        (query, f"{minute}m"): {
            "{" + ", ".join(f'{k}="{alert[k]}"' for k in kept if k in alert) + "}": 1.0
            for alert in firing(minute)
        }
        for minute in DELIVERED
    }
    recorded = recording.groups(default_objective_rules(), PRODUCTION)
    alerts_alone = (
        replace(group, rules=tuple(without_annotations(group))) for group in alert_groups(Links())
    )
    evaluate(tmp_path, (*recorded, *alerts_alone), inputs(), expected, interval="1m")


@pytest.mark.parametrize("minute", DELIVERED)
def test_long_stop_delivers_one_page_and_another_if_lag_does_not_fall(minute: int) -> None:
    found = {
        (alert["flow"], alert["alertname"], alert.get("sli", ""))
        for alert in delivered(firing(minute))
    }
    assert found == DELIVERED[minute]
