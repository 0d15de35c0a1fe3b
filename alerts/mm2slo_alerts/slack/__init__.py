"""The Slack message, as templates for Alertmanager 0.25 and later.

Delivered messages and `mm2slo alerts preview` use the same templates.
"""

from mm2slo_alerts.slack.message_limits import LIMITS, Limits
from mm2slo_alerts.slack.message_template import template

__all__ = ["LIMITS", "Limits", "template"]
