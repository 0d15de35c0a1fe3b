"""The resource `AlertmanagerConfig` (v1alpha1) of the Prometheus operator.

It has no template files, so each text of Slack carries the templates it uses; secrets are keys of
Kubernetes Secrets. The operator adds a matcher for the namespace to every route and inhibition.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from mm2slo_alerts.alertmanager.matchers import parse_matcher
from mm2slo_alerts.alertmanager.receivers import Receivers, receiver_name
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.config.alerting_config import AlertingConfig, SecretKey

_SLACK_SECRET: Final = "mm2slo-slack"
_WEBHOOK_SECRET: Final = "mm2slo-webhooks"
_ACRONYMS: Final = {"url": "URL", "ca": "CA"}
_DEFINED: Final = re.compile(r'^\{\{ define "([\w.]+)"', re.MULTILINE)
_USED: Final = re.compile(r'\{\{-? ?template "([\w.]+)"')


def resource(document: Mapping[str, Any], config: AlertingConfig, templates: str) -> dict[str, Any]:
    """Return the resource for a whole configuration *document* with its *templates*.

    Raises UserError without a namespace, and for a secret in a file.
    """
    if config.namespace is None:
        raise UserError("alertmanagerconfig needs a namespace; set alerting.namespace")
    secrets = _secrets(config)
    return {
        "apiVersion": "monitoring.coreos.com/v1alpha1",
        "kind": "AlertmanagerConfig",
        "metadata": {"name": "mm2slo", "namespace": config.namespace},
        "spec": {
            "route": _route(document["route"]),
            "receivers": [
                _receiver(each, secrets.get(each["name"], {}), _blocks(templates))
                for each in document["receivers"]
            ],
            "inhibitRules": [
                {
                    "sourceMatch": _matchers(rule["source_matchers"]),
                    "targetMatch": _matchers(rule["target_matchers"]),
                    **({"equal": rule["equal"]} if "equal" in rule else {}),
                }
                for rule in document["inhibit_rules"]
            ],
        },
    }


def _secrets(config: AlertingConfig) -> dict[str, dict[str, dict[str, str]]]:
    """By receiver and by key of the file that it replaces: the key of a Secret."""
    found = {}
    for channel in Receivers(config).slack:
        chosen = _chosen(channel.webhook_secret, _SLACK_SECRET, channel.name)
        found[receiver_name(channel.name)] = {"api_url": chosen}
    for hook in config.webhooks:
        chosen = _chosen(hook.credentials_secret, _WEBHOOK_SECRET, hook.name)
        found[receiver_name(hook.name)] = {"credentials": chosen}
    return found


def _chosen(secret: SecretKey | None, name: str, channel: str) -> dict[str, str]:
    if secret is not None:
        return {"name": secret.name, "key": secret.key}
    return {"name": name, "key": re.sub(r"[^A-Za-z0-9._-]+", "-", channel)}


def _route(route: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in route.items():
        if name == "matchers":
            found[name] = _matchers(value)
        elif name == "routes":
            found[name] = [_route(each) for each in value]
        else:
            found[_camel(name)] = value
    return found


def _matchers(texts: Sequence[str]) -> list[dict[str, str]]:
    return [
        {"name": each.label, "value": each.value, "matchType": each.operator}
        for each in map(parse_matcher, texts)
    ]


def _receiver(
    receiver: Mapping[str, Any],
    secrets: Mapping[str, Mapping[str, str]],
    blocks: Mapping[str, str],
) -> dict[str, Any]:
    def converted(key: str, value: Any) -> tuple[str, Any]:
        if key.endswith("_file"):
            name = key.removesuffix("_file")
            if name not in secrets:
                raise UserError(
                    f"receiver {receiver['name']!r} has {key}; AlertmanagerConfig expects "
                    f"{name}: {{name: SECRET, key: KEY}}"
                )
            return _camel(name), dict(secrets[name])
        return _camel(key), inner(value)

    def inner(value: Any) -> Any:
        if isinstance(value, dict):
            return dict(converted(key, each) for key, each in value.items())
        if isinstance(value, list | tuple):
            return [inner(each) for each in value]
        return _inlined(value, blocks) if isinstance(value, str) else value

    return dict(converted(key, value) for key, value in receiver.items())


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(_ACRONYMS.get(each, each.capitalize()) for each in rest)


def _blocks(templates: str) -> dict[str, str]:
    """The definitions of a template file, by name."""
    starts = list(_DEFINED.finditer(templates))
    ends = [each.start() for each in starts[1:]] + [len(templates)]
    return {
        each[1]: templates[each.start() : end].rstrip("\n")
        for each, end in zip(starts, ends, strict=True)
    }


def _inlined(text: str, blocks: Mapping[str, str]) -> str:
    """*text* after the definitions that it uses, directly or not."""
    needed: dict[str, None] = {}
    pending = _USED.findall(text)
    while pending:
        name = pending.pop()
        if name in blocks and name not in needed:
            needed[name] = None
            pending += _USED.findall(blocks[name])
    return "".join(blocks[name] for name in blocks if name in needed) + text
