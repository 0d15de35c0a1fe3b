"""Values of a valid mm2slo.yaml: defaults, durations, addresses, merged flows."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.config.config_document import Resolvers
from mm2slo_core.config.config_loader import bare_annotation, is_model, load_config
from mm2slo_core.config.config_model import Config, notices
from mm2slo_core.config.exporter_settings import CanaryCarrier, Listen, PolicyKind
from mm2slo_core.config.service_config import parse_listen
from mm2slo_core.quantity_text import duration_label, format_duration, parse_duration
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError

REFERENCE = Path(__file__).parents[3] / "docs" / "reference-config.yaml"
SMALLEST = """\
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows: [{flow: us->eu}]
"""


def load(text: str) -> Config:
    return load_config(text, resolvers=Resolvers(env=lambda name: name, file=lambda name: name))


def test_reference_file_contains_the_defaults() -> None:
    reference = load(REFERENCE.read_text(encoding="utf-8"))
    smallest = load(SMALLEST)
    assert reference.flows == smallest.flows
    assert reference.exporter == smallest.exporter
    assert reference.audit == smallest.audit
    assert reference.clusters["us"].security == smallest.clusters["us"].security
    assert reference.clusters["us"].client == smallest.clusters["us"].client


def written_keys(value: Any, annotation: Any) -> set[tuple[str, str]]:
    """The (section, key) pairs in *value*."""
    found = bare_annotation(annotation)
    arguments = getattr(found, "__args__", ())
    if is_model(found):
        passed_through = found.model_config.get("extra") == "allow"
        names = found.model_fields if passed_through else value
        keys = {(found.__name__, name) for name in value if name in names}
        for name, inner in value.items():
            if inner is not None and name in found.model_fields:
                keys |= written_keys(inner, found.model_fields[name].annotation)
        return keys
    if isinstance(value, list) and arguments:
        return set().union(*(written_keys(item, arguments[0]) for item in value))
    if isinstance(value, dict) and arguments:
        return set().union(*(written_keys(item, arguments[1]) for item in value.values()))
    return set()


def all_keys(annotation: Any) -> set[tuple[str, str]]:
    found = bare_annotation(annotation)
    if not is_model(found):
        return set().union(*(all_keys(part) for part in getattr(found, "__args__", ())))
    keys = {(found.__name__, name) for name in found.model_fields}
    return keys.union(*(all_keys(info.annotation) for info in found.model_fields.values()))


def test_reference_file_contains_every_option() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    written = written_keys(yaml.safe_load(text), Config)
    assert written - {("Config", "defaults")} == all_keys(Config)
    assert len(text.splitlines()) > 100


def test_defaults_are_merged_into_each_flow() -> None:
    config = load(
        SMALLEST.replace("flows: [{flow: us->eu}]", "")
        + """\
defaults: {canary: {interval: 2s, deadline: 2m}, topics: "a.*, b", slice: 20s}
flows:
  - flow: us->eu
    canary: {interval: 5s}
    topics: ["c"]
  - flow: eu->us
"""
    )
    first, second = config.flows
    assert (first.canary.interval, first.canary.deadline, first.topics) == (5.0, 120.0, ("c",))
    assert (second.canary.interval, second.topics, second.slice) == (2.0, ("a.*", "b"), 20.0)
    assert first.slice == 20.0
    assert first.flow == Flow("us", "eu")
    assert first.label == "us->eu"


def test_yaml_1_1_booleans_and_numbers_are_text() -> None:
    config = load(
        """\
clusters: {no: {bootstrap_servers: "no:1"}, 1: {bootstrap_servers: "one:1"}}
flows: [{flow: no->1, canary: {carrier: off}, policy: {separator: _}}]
"""
    )
    assert list(config.clusters) == ["no", "1"]
    assert config.flows[0].canary.carrier is CanaryCarrier.OFF


def test_anchors_and_merge_keys_are_resolved() -> None:
    config = load(
        """\
clusters: {us: {bootstrap_servers: "us:1"}, eu: {bootstrap_servers: "eu:1"}}
flows:
  - &base {flow: us->eu, slice: 20s, policy: {kind: identity}}
  - {<<: *base, flow: eu->us, slice: 30s}
"""
    )
    assert [(flow.label, flow.slice, flow.policy.kind) for flow in config.flows] == [
        ("us->eu", 20.0, PolicyKind.IDENTITY),
        ("eu->us", 30.0, PolicyKind.IDENTITY),
    ]


@pytest.mark.parametrize(
    ("text", "seconds", "shown"),
    [
        ("500ms", 0.5, "500ms"),
        ("5s", 5.0, "5s"),
        ("1.5s", 1.5, "1.5s"),
        ("10m", 600.0, "10m"),
        ("1h", 3_600.0, "1h"),
        ("35d", 3_024_000.0, "35d"),
        (90, 90.0, "90s"),
        ("90", 90.0, "90s"),
        (0.25, 0.25, "250ms"),
    ],
)
def test_parse_duration_returns_seconds(text: object, seconds: float, shown: str) -> None:
    assert parse_duration(text) == seconds
    assert format_duration(seconds) == shown


@pytest.mark.parametrize("text", ["", "5 parsecs", "-5s", "1h30m", None, True, float("nan"), [5]])
def test_parse_duration_of_an_invalid_value_raises(text: object) -> None:
    with pytest.raises(ValueError, match="expected a duration such as 500ms"):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=10**10))
def test_formatted_duration_is_parsed_to_the_same_value(milliseconds: int) -> None:
    seconds = round(milliseconds / 1000, 6)
    assert parse_duration(format_duration(seconds)) == seconds
    assert parse_duration(duration_label(seconds)) == seconds


def test_latency_tiers_are_labelled_in_seconds() -> None:
    config = load(SMALLEST.replace("us->eu}", "us->eu, canary: {latency_tiers: [500ms, 10s, 1m]}}"))
    assert config.flows[0].canary.tiers == {"0.5s": 0.5, "10s": 10.0, "60s": 60.0}


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:9469", "127.0.0.1", 9469),
        ("[::1]:9469", "::1", 9469),
        ("[::]:0", "::", 0),
        (":9469", "", 9469),
        ("exporter.example:80", "exporter.example", 80),
    ],
)
def test_listen_address_round_trip(text: str, host: str, port: int) -> None:
    assert parse_listen(text) == Listen(host, port)
    assert str(parse_listen(text)) == text


def test_flow_of_another_engine_has_no_canary_and_a_notice() -> None:
    config = load(SMALLEST.replace("us->eu}", "us->eu, engine: dual-produce}"))
    assert config.flows[0].canary.carrier is CanaryCarrier.OFF
    assert notices(config) == (
        (
            "us->eu: the engine dual-produce does not provide MirrorMaker 2's heartbeats, offset "
            "syncs, checkpoints and connector states; replicated position, lag and data freshness, "
            "stalled partitions; retention headroom and records lost to retention; "
            "failover readiness of consumer groups"
        ),
    )


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ("", PolicyKind.DEFAULT),
        (", engine: dual-produce", PolicyKind.IDENTITY),
        (", engine: other", PolicyKind.IDENTITY),
        (", engine: other, policy: {kind: default}", PolicyKind.DEFAULT),
    ],
)
def test_default_policy_of_another_engine_is_identity(settings: str, kind: PolicyKind) -> None:
    config = load(SMALLEST.replace("us->eu}", f"us->eu{settings}}}"))
    assert config.flows[0].policy.kind is kind


def test_flow_without_canary_has_a_notice() -> None:
    config = load(SMALLEST.replace("us->eu}", "us->eu, canary: {carrier: off}}"))
    assert notices(config) == ("us->eu: no canary is sent; availability is measured by heartbeats",)


@pytest.mark.parametrize("off", ["canary: {carrier: off}", "stall_after: 30s"])
def test_flow_without_canary_and_heartbeats_has_a_notice(off: str) -> None:
    text = SMALLEST.replace("us->eu}", f"us->eu, emit_heartbeats: false, {off}}}")
    read_only = "exporter: {read_only: true}\n" * ("canary" not in off)
    found = notices(load(text + read_only))
    assert found[-1] == "us->eu: availability is not measured, by canaries or by heartbeats"


def test_read_only_disables_canary_and_timeline() -> None:
    config = load(SMALLEST + "exporter: {read_only: true}\n")
    assert config.carrier(config.flows[0]) is CanaryCarrier.OFF
    assert not config.exporter.writes_timeline
    assert len(notices(config)) == 1


def test_client_settings_without_java_equivalent_have_a_notice() -> None:
    client = "{socket.timeout.ms: 9000, ssl.crl.location: c.pem, connections.max.idle.ms: 0}"
    config = load(SMALLEST.replace('"us:9092"', f'"us:9092", client: {client}'))
    assert notices(config) == (
        "clusters.us.client: ssl.crl.location, connections.max.idle.ms not applied by the audit, "
        "because Kafka's Java client has no equivalent",
    )


def test_active_active_identity_flows_have_notices() -> None:
    config = load(
        SMALLEST.replace("flows: [{flow: us->eu}]", "defaults: {policy: {kind: identity}}\n")
        + "flows: [{flow: us->eu}, {flow: eu->us}]\n"
    )
    assert [notice.partition(": ")[0] for notice in notices(config)] == ["us->eu", "eu->us"]


def test_select_returns_flows_by_label() -> None:
    config = load(SMALLEST.replace("{flow: us->eu}", "{flow: us->eu}, {flow: eu->us}"))
    assert [flow.label for flow in config.select([])] == ["us->eu", "eu->us"]
    assert [flow.label for flow in config.select([" eu -> us "])] == ["eu->us"]
    with pytest.raises(UserError) as unknown:
        config.select(["us->ue"])
    assert str(unknown.value) == (
        "'us->ue' is not a configured flow: expected one of eu->us, us->eu; did you mean 'us->eu'?"
    )
