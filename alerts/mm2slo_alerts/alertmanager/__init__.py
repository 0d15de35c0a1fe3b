"""Alertmanager's configuration: routes, receivers and inhibition rules.

It works with Alertmanager 0.25. Slack webhook URLs are secrets: the configuration names the files
that hold them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mm2slo_alerts.alertmanager.inhibition import INHIBITIONS
from mm2slo_alerts.alertmanager.receivers import DEFAULT_WEBHOOK_FILE, Receivers
from mm2slo_alerts.alertmanager.routes import root
from mm2slo_alerts.rule_model import PRODUCTION, Scale
from mm2slo_alerts.rule_text import yaml_text
from mm2slo_core.sli_counters import Sli
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.config.alerting_config import AlertingConfig
    from mm2slo_core.config.slo_config import ObjectiveConfig, SloConfig

__all__ = ["DEFAULT_WEBHOOK_FILE", "TEMPLATES", "configuration", "document"]

TEMPLATES: Final = "templates/mm2slo.tmpl"
"""Path of the templates, relative to the configuration."""
_CAUSE_SLIS: Final = (Sli.AVAILABILITY, Sli.DATA_FRESHNESS)
"""Indicators whose channel also gets the causes, the first one preferred. The team that watches the
order of records is not the one that restarts MirrorMaker 2."""


def configuration(config: AlertingConfig, slo: SloConfig, scale: Scale = PRODUCTION) -> str:
    """Return the text of `alertmanager.yml`. Raises UserError like `document`."""
    return yaml_text(document(config, slo, scale))


def document(config: AlertingConfig, slo: SloConfig, scale: Scale = PRODUCTION) -> dict[str, Any]:
    """Return the whole configuration.

    Without a channel, one Slack channel with the webhook in `DEFAULT_WEBHOOK_FILE` is assumed.
    Raises UserError when *slo* names a channel that *config* does not have.
    """
    receivers = Receivers(config, slo.channel)
    named = {slo.channel, *(each.channel for each in slo.objectives)}
    unknown = sorted(name for name in named if name is not None and name not in receivers.channels)
    if unknown:
        raise UserError(
            f"unknown channel {unknown[0]!r}; expected one of "
            f"{', '.join(receivers.channels)}; or add it to alerting.slack, "
            "alerting.webhooks or alerting.receivers"
        )
    return {
        "templates": [TEMPLATES],
        "route": root(receivers, _flow_channels(slo.objectives), scale),
        # Alertmanager 0.25 has no field for the reason.
        "inhibit_rules": [
            {
                "source_matchers": [str(each) for each in rule.source],
                "target_matchers": [str(each) for each in rule.target],
                **({"equal": list(rule.by)} if rule.by else {}),
            }
            for rule in INHIBITIONS
        ],
        "receivers": receivers.documents(),
    }


def _flow_channels(
    objectives: Iterable[ObjectiveConfig],
) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Return patterns of flows with the channel of their causes, which belong to no objective.

    The first match applies; flows that match none use `slo.channel`.
    """
    known = tuple(objectives)
    found: dict[tuple[tuple[str, ...], str], None] = {}
    for sli in _CAUSE_SLIS:
        for each in known:
            if each.sli is sli and each.channel is not None:
                found[each.flows, each.channel] = None
    return tuple(found)
