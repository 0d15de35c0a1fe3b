"""The configuration for an existing Alertmanager: a fragment, or the operator's resource.

The fragment holds what the other configuration lacks. The resource `AlertmanagerConfig` (v1alpha1)
has no template files, so each text of Slack carries the templates it uses; secrets are keys of
Kubernetes Secrets. The operator adds a matcher for the namespace to every route and inhibition.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mm2slo_alerts.alertmanager_config import DEFAULT_CHANNEL, OURS, Receivers, receiver_name
from mm2slo_core.catalogue.promql import Matcher
from mm2slo_core.config.alerting_config import AlertingConfig, SecretKey
from mm2slo_core.user_errors import UserError

_LISTS: Final = ("receivers", "inhibit_rules", "templates")


def fragment(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a whole configuration *document*, its route for our alerts only."""
    return {
        "route": {"matchers": [str(OURS)], **document["route"]},
        **{name: document[name] for name in _LISTS},
    }


def merged(existing: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Return *existing* with the fragment *added*, whose route comes first.

    Raises UserError for an existing configuration without a route, or a receiver in both.
    """
    if not isinstance(existing, dict) or not isinstance(existing.get("route"), dict):
        raise UserError("the file has no route; expected the configuration of an Alertmanager")
    known = {each["name"] for each in existing.get("receivers") or ()}
    names = [each["name"] for each in added["receivers"]]
    if twice := sorted(known.intersection(names) - {"null"}):
        raise UserError(
            f"receiver {twice[0]!r} is in both configurations; remove it from the existing one, "
            "or rename its channel in mm2slo.yaml"
        )
    route = existing["route"]
    new = [each for each in added["receivers"] if each["name"] not in known]
    lists = {**added, "receivers": new}
    return {
        **existing,
        "route": {**route, "routes": [added["route"], *(route.get("routes") or ())]},
        **{name: [*(existing.get(name) or ()), *lists[name]] for name in _LISTS},
    }


def shadowed(existing: Mapping[str, Any], alerts: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """Return a sentence for each existing route that some of *alerts* would no longer reach."""
    labels = list(alerts)
    sentences = []
    for route in existing["route"].get("routes") or ():
        try:
            matchers = tuple(matchers_of(route))
            taken = sorted({each["alertname"] for each in labels if matches(matchers, each)})
        except (UserError, re.error) as error:  # RE2 knows expressions that Python does not
            sentences.append(
                "unknown whether the fragment shadows the route to receiver "
                f"{route.get('receiver', 'of its parent')}: {error}; check it with: "
                "amtool config routes test"
            )
            continue
        if taken:
            named = ", ".join(map(str, matchers)) or "without matchers"
            more = f" and {len(taken) - 2} more" if len(taken) > 2 else ""
            sentences.append(
                f"the fragment shadows the route {named} (receiver "
                f"{route.get('receiver', 'of its parent')}), which would no longer receive "
                f"{', '.join(taken[:2])}{more}; remove it, or set continue: true in the "
                "fragment's route"
            )
    return tuple(sentences)


_SLACK_SECRET: Final = "mm2slo-slack"
DEFAULT_WEBHOOK_KEY: Final = f"the key {DEFAULT_CHANNEL.name} of the Secret {_SLACK_SECRET}"
_WEBHOOK_SECRET: Final = "mm2slo-webhooks"
_ACRONYMS: Final = {"url": "URL", "ca": "CA"}
# The CRD's other names (AlertmanagerConfig v1alpha1), some in receivers of one kind only.
_IRREGULAR: Final = {
    "agent_id": "agentID",
    "chat_id": "chatID",
    "corp_id": "corpID",
    "message_thread_id": "messageThreadID",
    "proxy_url": "proxyUrl",
    "require_tls": "requireTLS",
    "room_id": "roomID",
    "target_arn": "targetARN",
    "token_id": "tokenID",
    "token_url": "tokenUrl",
    "topic_arn": "topicARN",
    "msteams_configs.webhook_url": "webhookUrl",
    "victorops_configs.api_url": "apiUrl",
}
_PAIRS: Final = frozenset({"custom_fields", "details", "headers"})
"""Mappings to texts, which are lists of key and value in the CRD."""
_MAPPINGS: Final = frozenset({"attributes", "endpoint_params", "proxy_connect_header"})
"""Mappings whose keys are no fields."""
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
        for text in texts
        for each in parse_matchers(text)
    ]


def _receiver(
    receiver: Mapping[str, Any],
    secrets: Mapping[str, Mapping[str, str]],
    blocks: Mapping[str, str],
) -> dict[str, Any]:
    def converted(key: str, value: Any, parent: str = "") -> tuple[str, Any]:
        if key.endswith("_file"):
            name = key.removesuffix("_file")
            if name not in secrets:
                raise UserError(
                    f"receiver {receiver['name']!r} has {key}; AlertmanagerConfig expects "
                    f"{name}: {{name: SECRET, key: KEY}}"
                )
            return _camel(name), dict(secrets[name])
        found = _IRREGULAR.get(f"{parent}.{key}") or _camel(key)
        if isinstance(value, dict) and key in _PAIRS:
            return found, [{"key": name, "value": inner(each)} for name, each in value.items()]
        if isinstance(value, dict) and key in _MAPPINGS:
            return found, {name: inner(each) for name, each in value.items()}
        return found, inner(value, key)

    def inner(value: Any, parent: str = "") -> Any:
        if isinstance(value, dict):
            return dict(converted(key, each, parent) for key, each in value.items())
        if isinstance(value, list | tuple):
            return [inner(each, parent) for each in value]
        return _inlined(value, blocks) if isinstance(value, str) else value

    return dict(converted(key, value) for key, value in receiver.items())


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return _IRREGULAR.get(name) or first + "".join(
        _ACRONYMS.get(each, each.capitalize()) for each in rest
    )


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


_PART: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^",])+', re.DOTALL)
_MATCHER: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*(=~|!~|!=|=)\s*(.*?)\s*", re.DOTALL)


def parse_matchers(text: str) -> Iterator[Matcher]:
    """Yield the matchers of *text*, as in `{flow=~"us->.*", sli=""}`. Raises UserError.

    As ParseMatchers of Alertmanager: braces and quotes are optional, other escapes are literal.
    """
    for part in _PART.findall(text.strip().removeprefix("{").removesuffix("}")):
        found = _MATCHER.fullmatch(part)
        if found is None:
            raise UserError(f'{part!r} is not a matcher; expected one such as severity="page"')
        label, operator, value = found.groups()
        inner = value[1:-1] if value.startswith('"') else value
        yield Matcher(label, operator, _ESCAPE.sub(lambda each: _ESCAPED[each[0]], inner))


_ESCAPE: Final = re.compile(r"\\[n\"\\]")
_ESCAPED: Final = {r"\n": "\n", r"\"": '"', r"\\": "\\"}


def matchers_of(route: Mapping[str, Any]) -> Iterator[Matcher]:
    """Yield the matchers of *route*, also those of the deprecated fields."""
    for text in route.get("matchers") or ():
        yield from parse_matchers(text)
    for field, operator in (("match", "="), ("match_re", "=~")):
        for label, value in (route.get(field) or {}).items():
            yield Matcher(label, operator, str(value))


def matches(matchers: Sequence[Matcher], labels: Mapping[str, str]) -> bool:
    """Whether an alert matches; as in Alertmanager, a missing label is an empty one."""
    return all(_matches(each, labels.get(each.label, "")) for each in matchers)


def _matches(matcher: Matcher, found: str) -> bool:
    if matcher.operator in {"=", "!="}:
        same = found == matcher.value
    else:
        same = re.fullmatch(matcher.value, found) is not None
    return same is not matcher.operator.startswith("!")
