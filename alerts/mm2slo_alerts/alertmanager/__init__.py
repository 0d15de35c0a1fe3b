"""Alertmanager's configuration: who is told of what, how often, and what silences what.

Only what Alertmanager 0.25 knows is used. Addresses of Slack's webhooks are secrets and stand in
files that Alertmanager reads; this text holds none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.alertmanager.flows import channels_of_flows
from mm2slo_alerts.alertmanager.inhibition import inhibitions
from mm2slo_alerts.alertmanager.receivers import DEFAULT_WEBHOOK_FILE, Receivers
from mm2slo_alerts.alertmanager.routes import root
from mm2slo_alerts.model import PRODUCTION, Scale
from mm2slo_alerts.render import yaml_text
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from mm2slo_core.config.alerting_config import AlertingConfig
    from mm2slo_core.config.slo_config import SloConfig

__all__ = ["DEFAULT_WEBHOOK_FILE", "TEMPLATES", "configuration"]

TEMPLATES: Final = "templates/mm2slo.tmpl"
"""Where Alertmanager finds the templates, relative to its configuration."""


def configuration(config: AlertingConfig, slo: SloConfig, scale: Scale = PRODUCTION) -> str:
    """The text of `alertmanager.yml`.

    Without any channel, one Slack channel is assumed whose webhook stands in
    `DEFAULT_WEBHOOK_FILE`. Raises UserError when *slo* names a channel that *config*
    does not have.
    """
    receivers = Receivers(config, slo.channel)
    named = {slo.channel, *(each.channel for each in slo.objectives)}
    unknown = sorted(name for name in named if name is not None and name not in receivers.channels)
    if unknown:
        raise UserError(
            f"{unknown[0]!r} is no channel of alerting: expected one of "
            f"{', '.join(receivers.channels)}; add it to alerting.slack or alerting.webhooks"
        )
    return yaml_text(
        {
            "templates": [TEMPLATES],
            "route": root(receivers, channels_of_flows(slo.objectives), scale),
            "inhibit_rules": inhibitions(),
            "receivers": receivers.documents(),
        }
    )
