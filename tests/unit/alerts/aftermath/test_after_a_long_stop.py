"""Two hours of a stop and what follows, at the times of production: what fires, what is told.

Both flows stop after a healthy hour and copy again after three. `us->eu` works its backlog off
within an hour; `us->ap` only keeps up with what comes in. Canaries are on time at once, data and
the latency of the fastest tier are bad for as long as the flow is behind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest
from inhibiting import told
from promtool import evaluate, needs_promtool

from mm2slo_alerts import recording
from mm2slo_alerts.aftermath import MEMORIES
from mm2slo_alerts.files import alert_groups
from mm2slo_alerts.model import PRODUCTION, AlertRule, Links
from mm2slo_core.config.published import default_objective_rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mm2slo_alerts.model import Group, Rule

EU, AP = "us->eu", "us->ap"
AVAILABLE, FRESH, FAST_TIER = "availability", "data_freshness", "latency"
TIERS: Final = {AVAILABLE: "all", FRESH: "default", FAST_TIER: "10s"}
STOPPED, CATCHING_UP = "MM2FlowStopped", "MM2CatchingUp"
FAST, STEADY, SLOW, CREEPING = (
    f"MM2ErrorBudgetBurn{pair}" for pair in ("Fast", "Steady", "Slow", "Creeping")
)
SPENT = "MM2ErrorBudgetExhausted"
"""Of every budget: the window holds the hours of this test only."""
END = 660

BEGUN = 100
"""Minutes: all that a stop sets off fires by then, the creeping pair as the last."""
SEEN_TO_GAIN = 200
"""By then the lag has fallen for twenty minutes of the half hour that gives the course."""
# When each alert fires for the last time, in minutes. A page is seen until its short window holds
# too little, and kept for 5 minutes more; a ticket until its own short window holds too little.
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
# Far enough from each end above that the minute of an evaluation is no matter.
TOLD: Final[Mapping[int, set[tuple[str, str, str]]]] = {
    120: {(EU, STOPPED, ""), (AP, STOPPED, "")},
    # Records arrive again, and both flows are two hours behind.
    205: set(),
    # What a stop leaves is quiet for 45 minutes; who has not gained by then is told of.
    230: {(AP, FAST, FRESH)},
    # Caught up; the windows still hold it.
    280: {(AP, FAST, FRESH)},
    # A stop is quiet in the slow pair for two hours and a quarter; that flow is late to this day.
    353: {(AP, FAST, FRESH), (AP, SLOW, FAST_TIER), (AP, SPENT, FAST_TIER), (AP, SPENT, AVAILABLE)},
    # Once nothing is bad any more, what it has cost.
    420: {(AP, FAST, FRESH), (AP, SLOW, FAST_TIER), (AP, SPENT, FAST_TIER), (AP, SPENT, AVAILABLE)}
    | SPENT_OF_EU,
    # The creeping pair looks back six hours, and has nothing to add.
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
    """A sample a minute; 60 canaries and 8 slices in it."""
    found = dict(INPUTS)
    lags = {EU: "0x59 0+60x120 7080-120x59 0x420", AP: "0x59 0+60x120 7200x480"}
    # Good up to 60 minutes, and again from 180, from 240, or never.
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


def without_texts(group: Group) -> Iterator[Rule]:
    """Texts ask Prometheus for figures at each evaluation, and say nothing of what fires."""
    for rule in group.rules:
        yield replace(rule, annotations={}) if isinstance(rule, AlertRule) else rule


def firing(minute: int) -> Iterator[dict[str, str]]:
    """The alerts at *minute*, and what is remembered of them."""
    severity = {rule.alert: rule.labels["severity"] for rule in rules()}
    for (flow, name, sli), last in LAST.items():
        source, _, target = flow.partition("->")
        about = {"flow": flow, "source": source, "target": target}
        about |= {"sli": sli, "tier": TIERS[sli]} if sli else {}
        start = SEEN_TO_GAIN if name == CATCHING_UP else BEGUN
        if start <= minute <= last:
            yield {"alertname": name, "severity": severity[name], **about}
        for memory in MEMORIES:
            if memory.of == name and start <= minute <= last + memory.within / 60:
                yield {
                    "alertname": "MM2RecentlyPaged",
                    "severity": "none",
                    **memory.labels,
                    **{label: about[label] for label in memory.by},
                }


@needs_promtool
@pytest.mark.long
def test_what_fires_after_a_stop_of_two_hours(tmp_path: Path) -> None:
    kept = ("alertname", "flow", "sli", "of", "within")
    query = (
        f'count by ({", ".join(kept)}) (ALERTS{{alertstate="firing", alertname!="MM2Watchdog"}})'
    )
    expected = {
        (query, f"{minute}m"): {
            "{" + ", ".join(f'{k}="{alert[k]}"' for k in kept if k in alert) + "}": 1.0
            for alert in firing(minute)
        }
        for minute in TOLD
    }
    recorded = recording.groups(default_objective_rules(), PRODUCTION)
    alerts_alone = (
        replace(group, rules=tuple(without_texts(group))) for group in alert_groups(Links())
    )
    evaluate(tmp_path, (*recorded, *alerts_alone), inputs(), expected, interval="1m")


@pytest.mark.parametrize("minute", TOLD)
def test_one_stop_is_one_page_and_a_flow_that_does_not_gain_another(minute: int) -> None:
    found = {
        (alert["flow"], alert["alertname"], alert.get("sli", "")) for alert in told(firing(minute))
    }
    assert found == TOLD[minute]
