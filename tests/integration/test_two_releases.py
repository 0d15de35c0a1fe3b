"""Two releases of the chart in one Alertmanager: each Slack receives its own alerts only."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from fake_slack import FakeSlackWebhook
from helm_chart import CHART
from monitoring import Alertmanager, alert, alertmanager

from mm2slo_lab.managed_process import wait_for

pytestmark = pytest.mark.xdist_group("monitoring")

RESOURCE: Final = CHART / "files" / "alertmanagerconfig.yaml"
RELEASES: Final = ("tenant-a", "tenant-b")


def snake_case(value: Any) -> Any:
    """Keys as in Alertmanager's own configuration."""
    if isinstance(value, dict):
        return {
            re.sub(r"(?<=[a-z])([A-Z]+)", lambda found: f"_{found[1].lower()}", key): snake_case(
                each
            )
            for key, each in value.items()
        }
    return [snake_case(each) for each in value] if isinstance(value, list) else value


def matchers(found: list[dict[str, str]]) -> list[str]:
    return [f'{each["name"]}{each["match_type"]}"{each["value"]}"' for each in found]


def route(found: dict[str, Any], prefix: str) -> dict[str, Any]:
    """A route, which waits for no other alerts here."""
    made = {**found, "group_wait": "0s", "group_interval": "1s"}
    if "receiver" in made:
        made["receiver"] = prefix + made["receiver"]
    if "matchers" in made:
        made["matchers"] = matchers(made["matchers"])
    made["routes"] = [route(each, prefix) for each in made.get("routes", ())]
    return made


def of_operator(spec: dict[str, Any], namespace: str, webhook: str) -> dict[str, Any]:
    """*spec* in the configuration that the operator makes of all AlertmanagerConfigs.

    With `alertmanagerConfigMatcherStrategy: OnNamespace`, its default: the namespace is a matcher
    of the first route and of both sides of an inhibition, and alerts go on to other namespaces.
    """
    spec = snake_case(spec)
    prefix = f"{namespace}/mm2slo/"
    own = f'namespace="{namespace}"'
    top = route(spec["route"], prefix)
    for receiver in spec["receivers"]:
        receiver["name"] = prefix + receiver["name"]
        for slack in receiver.get("slack_configs", ()):
            assert slack["api_url"] == {"name": "SLACK-SECRET", "key": "SLACK-KEY"}
            slack["api_url"] = webhook
    return {
        "route": {**top, "matchers": [own], "continue": True},
        "receivers": spec["receivers"],
        "inhibit_rules": [
            {
                "source_matchers": [own, *matchers(each["source_match"])],
                "target_matchers": [own, *matchers(each["target_match"])],
                "equal": each.get("equal", []),
            }
            for each in spec["inhibit_rules"]
        ],
    }


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[tuple[Alertmanager, dict[str, FakeSlackWebhook]]]:
    spec = yaml.safe_load(RESOURCE.read_text(encoding="utf-8"))["spec"]
    with ExitStack() as stack:
        slacks = {name: stack.enter_context(FakeSlackWebhook(burst=100)) for name in RELEASES}
        parts = [of_operator(spec, name, slack.url) for name, slack in slacks.items()]
        config = {
            "route": {"receiver": "null", "routes": [part["route"] for part in parts]},
            "receivers": [
                {"name": "null"},
                *(each for part in parts for each in part["receivers"]),
            ],
            "inhibit_rules": [each for part in parts for each in part["inhibit_rules"]],
        }
        yield stack.enter_context(alertmanager(tmp_path, yaml.safe_dump(config))), slacks
        assert [slack.refusals for slack in slacks.values()] == [[], []]


def posted(namespace: str, name: str, flow: str, **labels: str) -> dict[str, Any]:
    source, _, target = flow.partition("->")
    own = {"alertname": name, "severity": "page", "flow": flow, "source": source, "target": target}
    summary = {"summary": f"{name} {labels.get('source', source)} of {namespace}"}
    return alert({**own, "namespace": namespace, **labels}, summary)


def test_each_slack_receives_alerts_of_its_own_namespace(
    shared: tuple[Alertmanager, dict[str, FakeSlackWebhook]],
) -> None:
    manager, slacks = shared
    unreachable = posted("tenant-a", "MM2ClusterUnreachable", "", source="us", cluster="us")
    stopped = [posted(name, "MM2FlowStopped", "us->eu") for name in RELEASES]
    manager.post(unreachable, *stopped, posted("other", "MM2FlowStopped", "us->eu"))
    wait_for(lambda: all(slack.messages for slack in slacks.values()), "a message in each channel")
    # Delivered after whatever went wrong with the first alerts.
    manager.post(*(posted(name, "MM2FlowStopped", "asia->eu") for name in RELEASES))
    wait_for(lambda: all(len(slack.messages) > 1 for slack in slacks.values()), "a second one")

    received = {
        name: re.findall(r"MM2\w+ \S+ of [\w-]+", str([each.title for each in slack.messages]))
        for name, slack in slacks.items()
    }
    assert received == {
        "tenant-a": ["MM2ClusterUnreachable us of tenant-a", "MM2FlowStopped asia of tenant-a"],
        "tenant-b": ["MM2FlowStopped us of tenant-b", "MM2FlowStopped asia of tenant-b"],
    }
