"""Routes: by severity within each channel; what matches nothing is a ticket of the default one.

Alerts about objectives carry the channel of theirs; those about causes go where the flow's
availability is answered for.

Groups decide how many messages a fault gives. Alerts of an objective are one message per flow,
indicator and threshold, whichever pair of windows burns; a cluster is one message for both its
roles; all else is one message per alert and flow, low coverage and spent budgets too: what is not
seen is not seen by any indicator, and one outage spends several budgets at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mm2slo_alerts.alertmanager.receivers import NOBODY, receiver_name
from mm2slo_alerts.recording.promise import flow_pattern
from mm2slo_core.promql import duration, equal, matching, unequal, unmatching

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_alerts.alertmanager.receivers import Receivers
    from mm2slo_alerts.model import Scale
    from mm2slo_core.promql import Matcher

OBJECTIVE: Final = ("flow", "sli", "tier")
CAUSE: Final = ("alertname", "flow", "cluster")
OF_ALL_INDICATORS: Final = ("MM2SLOCoverageLow", "MM2ErrorBudgetExhausted")

_PAGE_WAIT: Final = 10.0
"""Long enough for both roles of a cluster, short beside the minutes an alert takes to fire."""
_PAGE_INTERVAL: Final = 120.0
"""Also when a message that Slack refused for its rate is sent again: 0.25 retries only 5xx."""
_PAGE_REPEAT: Final = 4 * 3_600.0
_TICKET_WAIT: Final = 30.0
_TICKET_INTERVAL: Final = 300.0
_TICKET_REPEAT: Final = 24 * 3_600.0
_HEARTBEAT: Final = 60.0


def root(
    receivers: Receivers, of_flows: Sequence[tuple[Sequence[str], str]], scale: Scale
) -> dict[str, Any]:
    """The section `route`; *of_flows* are patterns of flows and the channel of their causes."""
    return {
        "receiver": receivers.default,
        **_ticket(CAUSE, scale),
        "routes": [
            {
                **_matching(equal("alertname", "MM2Watchdog")),
                "receiver": receivers.watchdog,
                **_times(("alertname",), 0.0, _HEARTBEAT, _HEARTBEAT, scale),
            },
            {**_matching(equal("severity", "none")), "receiver": NOBODY},
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
                    # An objective that names no channel has that of everything. A pattern for any
                    # flow would match alerts that have none.
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
    """Pages, and tickets of an objective; other tickets are what the parent does."""
    page = equal("severity", "page")
    of_objective = (unequal("sli", ""), unmatching("alertname", "|".join(OF_ALL_INDICATORS)))
    return [
        {**_matching(page, *of_objective), **_page(OBJECTIVE, scale)},
        {**_matching(page), **_page(CAUSE, scale)},
        {**_matching(*of_objective), **_ticket(OBJECTIVE, scale)},
    ]


def group_by(labels: Mapping[str, str]) -> tuple[str, ...]:
    """The labels by which an alert with *labels* is grouped."""
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
