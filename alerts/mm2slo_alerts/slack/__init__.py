"""The Slack message, as templates that Alertmanager 0.25 and later execute.

One source: what is delivered and what `mm2slo alerts preview` shows are both this text, executed
by Go's template engine.
"""

from mm2slo_alerts.slack.limits import LIMITS, Limits
from mm2slo_alerts.slack.message import template

__all__ = ["LIMITS", "Limits", "template"]
