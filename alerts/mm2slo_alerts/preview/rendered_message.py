"""A Slack message, rendered by amtool from the templates of Alertmanager's configuration."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from mm2slo_alerts.alertmanager.receivers import Receivers
from mm2slo_alerts.alertmanager.routes import group_by

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from mm2slo_alerts.preview.rendered_annotations import Fired
    from mm2slo_core.config.alerting_config import AlertingConfig

_SEPARATOR: Final = "\x1e"
_ORDER: Final = ("title", "title_link", "text", "fallback", "footer", "color")
_KEPT_EMPTY: Final = frozenset({"text", "fallback", "footer"})
"""Keys that Alertmanager 0.25 sends even if empty; it omits all others."""
_NEVER: Final = "0001-01-01T00:00:00Z"


def message_data(fired: Fired, since: datetime, until: datetime | None, manager: str) -> str:
    """Return the JSON for the templates: *fired*, resolved if it ended at *until*.

    *manager* is Alertmanager's external URL.
    """
    status = "firing" if until is None else "resolved"
    labels = dict(fired.labels)
    alert = {
        "status": status,
        "labels": labels,
        "annotations": dict(fired.annotations),
        "startsAt": since.isoformat(),
        "endsAt": _NEVER if until is None else until.isoformat(),
        "generatorURL": "",
        "fingerprint": "0" * 16,
    }
    return json.dumps(
        {
            "receiver": "preview",
            "status": status,
            "alerts": [alert],
            "groupLabels": {name: labels[name] for name in group_by(labels) if name in labels},
            "commonLabels": labels,
            "commonAnnotations": dict(fired.annotations),
            "externalURL": manager,
        }
    )


def message_parts(config: AlertingConfig) -> tuple[str, dict[str, Any]]:
    """Return the text that amtool renders, and the receiver settings it comes from."""
    settings = Receivers(config).slack_settings()
    texts = [settings[part] for part in _ORDER]
    texts += [action["url"] for action in settings.get("actions", ())]
    return _SEPARATOR.join(texts), settings


def parse_message(output: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON that Slack gets, from amtool's output for `message_parts`."""
    parts = output.removesuffix("\n").split(_SEPARATOR)
    rendered, urls = dict(zip(_ORDER, parts, strict=False)), parts[len(_ORDER) :]
    attachment: dict[str, Any] = {
        name: text for name, text in rendered.items() if text or name in _KEPT_EMPTY
    }
    attachment["callback_id"] = ""
    attachment["mrkdwn_in"] = list(settings["mrkdwn_in"])
    if urls:
        attachment["actions"] = [
            {"type": action["type"], "text": action["text"], "url": url}
            for action, url in zip(settings["actions"], urls, strict=True)
        ]
    message = {"username": settings["username"], "attachments": [attachment]}
    return {"channel": settings["channel"], **message} if "channel" in settings else message
