"""`AlertmanagerConfig`, compared with the schema of the Prometheus operator."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
import yaml
from jsonschema import Draft202012Validator
from strimzi_schemas import FOLDER, KubernetesLoader, needs_definitions

from mm2slo_alerts.alertmanager_config import document
from mm2slo_alerts.alertmanager_variants import resource
from mm2slo_alerts.slack_template import message_template
from mm2slo_core.config.alerting_config import (
    AlertingConfig,
    LinksConfig,
    Receiver,
    SecretKey,
    SlackChannel,
    SloConfig,
    Webhook,
)
from mm2slo_core.user_errors import UserError

DEFINITION: Final = FOLDER / "monitoring.coreos.com_alertmanagerconfigs.yaml"
PAGERDUTY: Final = Receiver.model_validate(
    {
        "name": "pagerduty",
        "pagerduty_configs": [
            {"routing_key": {"name": "pd", "key": "routing-key"}, "client_url": "https://x.example"}
        ],
    }
)
OTHERS: Final = tuple(
    Receiver.model_validate({"name": name, f"{name}_configs": [settings]})
    for name, settings in {
        "opsgenie": {"details": {"run_book": "{{ .CommonLabels.flow }}"}},
        "email": {"to": "a@example.com", "require_tls": False, "headers": {"Reply_To": "b"}},
        "telegram": {"bot_token": {"name": "t", "key": "k"}, "chat_id": -1},
        "msteams": {"webhook_url": {"name": "t", "key": "k"}},
        "msteamsv2": {"webhook_url": {"name": "t", "key": "k"}},
        "victorops": {"api_url": "https://v", "routing_key": "r", "custom_fields": {"a_b": "c"}},
        "sns": {"topic_arn": "arn:x", "sigv4": {"role_arn": "r"}, "attributes": {"a_b": "c"}},
        "webhook": {
            "http_config": {
                "oauth2": {
                    "client_id": {"secret": {"name": "o", "key": "id"}},
                    "client_secret": {"name": "o", "key": "secret"},
                    "token_url": "https://t.example",
                    "endpoint_params": {"a_b": "c"},
                }
            }
        },
    }.items()
)
CONFIG: Final = AlertingConfig(
    links=LinksConfig(
        runbook="https://r.example",
        dashboard="https://d.example",
        report="https://s.example",
        alertmanager="https://a.example",
        splunk="https://l.example",
    ),
    slack=(
        SlackChannel(name="pay team", webhook_url_file="/run/secrets/pay", channel="#pay"),
        SlackChannel(
            name="ops",
            webhook_url_file="/run/secrets/ops",
            webhook_secret=SecretKey(name="hooks", key="ops"),
        ),
    ),
    webhooks=(
        Webhook(name="call", url="https://c.example", credentials_file="/run/secrets/token"),
    ),
    receivers=(PAGERDUTY, *OTHERS),
    namespace="monitoring",
)


def made(config: AlertingConfig = CONFIG) -> dict[str, Any]:
    return resource(document(config, SloConfig()), config, message_template(config))


def unknown_keys(value: Any, schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Keys that the schema does not have, which the API server would drop."""
    if isinstance(value, dict) and "properties" in schema:
        for key, inner in value.items():
            if key not in schema["properties"]:
                yield f"{path}.{key}"
            else:
                yield from unknown_keys(inner, schema["properties"][key], f"{path}.{key}")
    elif isinstance(value, list) and "items" in schema:
        for inner in value:
            yield from unknown_keys(inner, schema["items"], path)


def routes(route: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield route
    for each in route.get("routes", ()):
        yield from routes(each)


@needs_definitions
def test_resource_matches_schema_of_the_operator() -> None:
    [definition] = yaml.load_all(DEFINITION.read_text(encoding="utf-8"), KubernetesLoader)
    [version] = [each for each in definition["spec"]["versions"] if each["name"] == "v1alpha1"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    found = made()["spec"]
    assert [error.message for error in Draft202012Validator(spec).iter_errors(found)] == []
    assert list(unknown_keys(found, spec)) == []
    # The schema leaves child routes open.
    for route in routes(found["route"]):
        assert list(unknown_keys(route, spec["properties"]["route"])) == []


def test_keys_of_details_are_kept_as_list() -> None:
    receivers = {each["name"]: each for each in made()["spec"]["receivers"]}
    [opsgenie] = receivers["channel-opsgenie"]["opsgenieConfigs"]
    assert opsgenie["details"] == [{"key": "run_book", "value": "{{ .CommonLabels.flow }}"}]
    [sns] = receivers["channel-sns"]["snsConfigs"]
    assert sns["attributes"] == {"a_b": "c"}
    assert (sns["topicARN"], sns["sigv4"]) == ("arn:x", {"roleArn": "r"})


def test_secrets_are_keys_of_secrets() -> None:
    receivers = {each["name"]: each for each in made()["spec"]["receivers"]}
    [slack] = receivers["channel-pay team"]["slackConfigs"]
    assert slack["apiURL"] == {"name": "mm2slo-slack", "key": "pay-team"}
    assert slack["channel"] == "#pay"
    [slack] = receivers["channel-ops"]["slackConfigs"]
    assert slack["apiURL"] == {"name": "hooks", "key": "ops"}
    [hook] = receivers["channel-call"]["webhookConfigs"]
    assert hook["httpConfig"] == {
        "authorization": {"credentials": {"name": "mm2slo-webhooks", "key": "call"}}
    }
    [pager] = receivers["channel-pagerduty"]["pagerdutyConfigs"]
    assert pager == {
        "routingKey": {"name": "pd", "key": "routing-key"},
        "clientURL": "https://x.example",
    }
    assert "/run/secrets" not in str(made())


def test_slack_texts_contain_the_templates_they_use() -> None:
    receivers = {each["name"]: each for each in made()["spec"]["receivers"]}
    [slack] = receivers["channel-ops"]["slackConfigs"]
    color, text = slack["color"], slack["text"]
    assert color.startswith('{{ define "mm2slo.slack.color" }}') or "mm2slo.slack.color" in color
    assert "mm2slo.duration" not in color
    for name in ("escape", "summary", "duration", "slack.text"):
        assert f'{{{{ define "mm2slo.{name}" ' in text
    assert text.endswith('{{ template "mm2slo.slack.text" . }}')


def test_matchers_have_type() -> None:
    spec = made()["spec"]
    assert spec["inhibitRules"][0]["sourceMatch"] == [
        {"name": "alertname", "value": "MM2ClusterUnreachable", "matchType": "="},
        {"name": "source", "value": "", "matchType": "!="},
    ]


def test_resource_needs_namespace_and_no_files() -> None:
    with pytest.raises(UserError, match=r"set alerting\.namespace"):
        made(CONFIG.model_copy(update={"namespace": None}))
    opsgenie = Receiver.model_validate(
        {"name": "o", "opsgenie_configs": [{"api_key_file": "/run/secrets/key"}]}
    )
    with pytest.raises(UserError, match=r"'channel-o' has api_key_file.*expects api_key: \{name"):
        made(CONFIG.model_copy(update={"receivers": (opsgenie,)}))
