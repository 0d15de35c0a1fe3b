"""Routes: by severity within each channel; unmatched alerts are tickets of the default channel.

Alerts about objectives carry their channel; those about causes use the channel of the flow's
availability.

Grouping decides how many messages a fault causes: all pages about a flow are one message, all pages
about a cluster another, and so are tickets; other alerts are grouped by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mm2slo_alerts.alertmanager.receivers import receiver_name
from mm2slo_alerts.recording.objective_series import flow_pattern
from mm2slo_core.promql import duration, equal, matching, unequal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_alerts.alertmanager.receivers import Receivers
    from mm2slo_alerts.rule_model import Scale
    from mm2slo_core.promql import Matcher

_SUBJECTS: Final = ("flow", "cluster")
"""Labels to group by, the first that an alert has."""
_BY_NAME: Final = ("alertname",)
_PAGE_WAIT: Final = 10.0
"""Long enough for both roles of a cluster, short compared to the time an alert takes to fire."""
_PAGE_INTERVAL: Final = 60.0
"""Part of the five minutes in which a stop that is over is resolved. Also the delay before a
rate-limited message is sent again: 0.25 retries only on 5xx."""
_PAGE_REPEAT: Final = 4 * 3_600.0
_TICKET_WAIT: Final = 30.0
_TICKET_INTERVAL: Final = 300.0
_TICKET_REPEAT: Final = 24 * 3_600.0
_HEARTBEAT: Final = 60.0


def root(
    receivers: Receivers, of_flows: Sequence[tuple[Sequence[str], str]], scale: Scale
) -> dict[str, Any]:
    """Return the section `route`; *of_flows*: patterns of flows and the channel of their causes."""
    page = receivers.config.severities.page
    return {
        "receiver": receivers.default,
        "group_by": list(_BY_NAME),
        **_times(_TICKET_WAIT, _TICKET_INTERVAL, _TICKET_REPEAT, scale),
        "routes": [
            {
                **_matching(equal("alertname", "MM2Watchdog")),
                "receiver": receivers.watchdog,
                **_times(0.0, _HEARTBEAT, _HEARTBEAT, scale),
            },
            {
                **_matching(equal("alertname", "MM2SlackDeliveryFailing")),
                "receiver": receivers.platform,
            },
            *(
                {
                    **_matching(equal("channel", channel)),
                    "receiver": receiver_name(channel),
                    "routes": _by_severity(page, scale),
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
                    "routes": _by_severity(page, scale),
                }
                for flows, channel in of_flows
            ),
            *_by_severity(page, scale),
        ],
    }


def group_by(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the labels by which an alert with *labels* is grouped."""
    return next(((each,) for each in _SUBJECTS if labels.get(each)), _BY_NAME)


def _by_severity(severity: str, scale: Scale) -> list[dict[str, Any]]:
    """Alerts with the *severity* of pages; and tickets about a flow or a cluster.

    The parent route handles other tickets.
    """
    page = equal("severity", severity)
    times = _times(_PAGE_WAIT, _PAGE_INTERVAL, _PAGE_REPEAT, scale)
    by_subject = [(unequal(each, ""), {"group_by": [each]}) for each in _SUBJECTS]
    return [
        *({**_matching(page, about), **by, **times} for about, by in by_subject),
        {**_matching(page), **times},
        *({**_matching(about), **by} for about, by in by_subject),
    ]


def _times(wait: float, interval: float, repeat: float, scale: Scale) -> dict[str, Any]:
    return {
        "group_wait": duration(scale(wait)) if wait else "0s",
        "group_interval": duration(scale(interval)),
        "repeat_interval": duration(scale(repeat)),
    }


def _matching(*matchers: Matcher) -> dict[str, list[str]]:
    return {"matchers": [str(each) for each in matchers]}
