"""Routes: by severity within each channel; unmatched alerts are tickets of the default channel.

Alerts about objectives carry their channel; those about causes use the channel of the flow's
availability.

Grouping decides how many messages a fault causes. Alerts of an objective are one message per flow,
indicator and tier, whichever pair of windows burns; a cluster is one message for both its roles;
all others are one message per alert and flow. So are low coverage and exhausted budgets, since one
outage affects several indicators at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mm2slo_alerts.alertmanager.receivers import DISCARD, receiver_name
from mm2slo_alerts.recording.objective_series import flow_pattern
from mm2slo_core.promql import duration, equal, matching, unequal, unmatching

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_alerts.alertmanager.receivers import Receivers
    from mm2slo_alerts.rule_model import Scale
    from mm2slo_core.promql import Matcher

OBJECTIVE: Final = ("flow", "sli", "tier")
CAUSE: Final = ("alertname", "flow", "cluster")
OF_ALL_INDICATORS: Final = ("MM2SLOCoverageLow", "MM2ErrorBudgetExhausted")

_PAGE_WAIT: Final = 10.0
"""Long enough for both roles of a cluster, short compared to the time an alert takes to fire."""
_PAGE_INTERVAL: Final = 120.0
"""Also the delay before a rate-limited message is sent again: 0.25 retries only on 5xx."""
_PAGE_REPEAT: Final = 4 * 3_600.0
_TICKET_WAIT: Final = 30.0
_TICKET_INTERVAL: Final = 300.0
_TICKET_REPEAT: Final = 24 * 3_600.0
_HEARTBEAT: Final = 60.0


def root(
    receivers: Receivers, of_flows: Sequence[tuple[Sequence[str], str]], scale: Scale
) -> dict[str, Any]:
    """Return the section `route`; *of_flows*: patterns of flows and the channel of their causes."""
    return {
        "receiver": receivers.default,
        **_ticket(CAUSE, scale),
        "routes": [
            {
                **_matching(equal("alertname", "MM2Watchdog")),
                "receiver": receivers.watchdog,
                **_times(("alertname",), 0.0, _HEARTBEAT, _HEARTBEAT, scale),
            },
            {**_matching(equal("severity", "none")), "receiver": DISCARD},
            {
                **_matching(equal("alertname", "MM2SlackDeliveryFailing")),
                "receiver": receivers.platform,
            },
            *(
                {
                    **_matching(equal("channel", channel)),
                    "receiver": receiver_name(channel),
                    "routes": _by_severity(scale),
                }
                for channel in receivers.channels
            ),
            *(
                {
                    # Objectives without a channel use the default one. A pattern for any flow
                    # would also match alerts without a flow.
                    **_matching(
                        equal("channel", ""),
                        equal("sli", ""),
                        unequal("flow", ""),
                        matching("flow", flow_pattern(flows)),
                    ),
                    "receiver": receiver_name(channel),
                    "routes": _by_severity(scale),
                }
                for flows, channel in of_flows
            ),
            *_by_severity(scale),
        ],
    }


def _by_severity(scale: Scale) -> list[dict[str, Any]]:
    """Pages, and tickets of an objective; the parent route handles other tickets."""
    page = equal("severity", "page")
    of_objective = (unequal("sli", ""), unmatching("alertname", "|".join(OF_ALL_INDICATORS)))
    return [
        {**_matching(page, *of_objective), **_page(OBJECTIVE, scale)},
        {**_matching(page), **_page(CAUSE, scale)},
        {**_matching(*of_objective), **_ticket(OBJECTIVE, scale)},
    ]


def group_by(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the labels by which an alert with *labels* is grouped."""
    one = labels.get("sli") and labels["alertname"] not in OF_ALL_INDICATORS
    return OBJECTIVE if one else CAUSE


def _page(by: tuple[str, ...], scale: Scale) -> dict[str, Any]:
    return _times(by, _PAGE_WAIT, _PAGE_INTERVAL, _PAGE_REPEAT, scale)


def _ticket(by: tuple[str, ...], scale: Scale) -> dict[str, Any]:
    return _times(by, _TICKET_WAIT, _TICKET_INTERVAL, _TICKET_REPEAT, scale)


def _times(
    by: tuple[str, ...], wait: float, interval: float, repeat: float, scale: Scale
) -> dict[str, Any]:
    return {
        "group_by": list(by),
        "group_wait": duration(scale(wait)) if wait else "0s",
        "group_interval": duration(scale(interval)),
        "repeat_interval": duration(scale(repeat)),
    }


def _matching(*matchers: Matcher) -> dict[str, list[str]]:
    return {"matchers": [str(each) for each in matchers]}
