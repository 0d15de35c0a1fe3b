"""Problems in flows, with their exact text."""

import pytest

from mm2slo_core.config.config_document import ConfigError
from mm2slo_core.config.config_loader import load_config

CLUSTERS = """\
clusters:
  us: {bootstrap_servers: "us:9092"}
  eu: {bootstrap_servers: "eu:9092"}
"""
FLOWS = """\
flows:
  - flow: us->eu
"""


def report(text: str) -> list[str]:
    """The text of each problem."""
    with pytest.raises(ConfigError) as refused:
        load_config(text)
    return [str(problem) for problem in refused.value.problems]


def one(text: str) -> str:
    (problem,) = report(text)
    return problem


FLOW_MISTAKES = {
    "an unknown key": ("    canary: {intervall: 1s}",
        "flows[0].canary.intervall (line 6): unknown key\n"
        "  expected: one of carrier, topic, interval, deadline, latency_tiers\n"
        "  next step: did you mean 'interval'?"),
    "text for a duration": ("    canary: {interval: soon}",
        "flows[0].canary.interval (line 6): 'soon' is not a duration\n"
        "  expected: a duration such as 500ms, 5s, 10m, 1h or 35d, or a number of seconds\n"
        "  next step: write 5s, for example"),
    "a duration below its bound": ("    canary: {interval: 10ms}",
        "flows[0].canary.interval (line 6): '10ms' is too short\n"
        "  expected: a duration of at least 100ms"),
    "a boolean for a duration": ("    slice: true",
        "flows[0].slice (line 6): True is not a duration\n"
        "  expected: a duration such as 500ms, 5s, 10m, 1h or 35d, or a number of seconds\n"
        "  next step: write 5s, for example"),
    "text for a flag": ("    exactly_once: yes",
        "flows[0].exactly_once (line 6): 'yes' has the wrong type\n  expected: true or false"),
    "an unknown value": ("    isolation: serializable",
        "flows[0].isolation (line 6): 'serializable' is not a valid value\n"
        "  expected: 'read_uncommitted' or 'read_committed'"),
    "text in place of a section": ("    policy: identity",
        "flows[0].policy (line 6): the value has the wrong type\n  expected: a mapping with keys"),
    "a number below its bound": ("    readiness: {max_redelivery_records: -1}",
        "flows[0].readiness.max_redelivery_records (line 6): -1 is too small\n"
        "  expected: at least 0"),
    "an invalid regular expression": ('    topics: ["orders.*", "pay(ments"]',
        "flows[0].topics[1] (line 6): 'pay(ments' cannot be used: invalid regular expression: "
        "missing ), unterminated subpattern at position 3. A comma separates entries of the "
        "list, also inside {..}\n"
        "  expected: a regular expression for whole names, such as orders.*"),
    "a comma inside an expression": ('    groups: ["a{1,3}"]',
        "flows[0].groups[0] (line 6): 'a{1,3}' contains a comma, at which MirrorMaker 2 splits "
        "lists\n  expected: one regular expression per list entry\n"
        "  next step: write two entries, or the same expression without a comma"),
    "a topic name that Kafka refuses": ("    connect: {status_topic: my status}",
        "flows[0].connect.status_topic (line 6): 'my status' is not a topic name\n"
        "  expected: 1 to 249 letters, digits, dots, underscores and hyphens"),
    "freshness that leaves topics without a class": (
        '    freshness: [{name: gold, topics: ["gold.*"]}]',
        "flows[0].freshness (line 6): does not match all topics\n"
        '  expected: a last class with topics: [".*"]\n'
        '  next step: add {name: default, topics: [".*"], threshold: 60s} as the last one'),
    "a freshness class that hides those after it": ("    freshness: [{name: a}, {name: b}]",
        "flows[0].freshness[0] (line 6): matches every topic, so the classes after it never "
        "apply\n  expected: the class that matches all topics last"),
    "two freshness classes of one name": ( '    freshness: [{name: a, topics: ["x"]}, {name: a}]',
        "flows[0].freshness (line 6): has 2 classes named 'a'\n  expected: unique names"),
    "a freshness class named as the tier of others": ("    freshness: [{name: all}]",
        "flows[0].freshness[0].name (line 6): is 'all'\n  expected: another name\n"
        "  next step: rename the class: alerts and dashboards omit that tier"),
    "no freshness class at all": ("    freshness: []",
        "flows[0].freshness (line 6): a list has no entries\n  expected: at least one entry"),
    "latency tiers out of order": ("    canary: {latency_tiers: [60s, 10s]}",
        "flows[0].canary.latency_tiers (line 6): are not ascending\n"
        "  expected: each threshold once, smallest first"),
    "a latency tier beyond the deadline": ("    canary: {latency_tiers: [10s, 2m]}",
        "flows[0].canary.latency_tiers (line 6): 2m is longer than the deadline\n"
        "  expected: thresholds up to 1m, when a canary is settled\n"
        "  next step: remove the threshold or increase deadline"),
    "a canary interval beyond the deadline": ("    canary: {interval: 2m}",
        "flows[0].canary.interval (line 6): 2m is longer than the deadline\n  expected: up to 1m"),
    "a slice without a sample": ("    slice: 2s",
        "flows[0].slice (line 6): 2s is shorter than exporter.poll_interval\n"
        "  expected: at least 5s, so that each slice has a sample\n"
        "  next step: increase slice or decrease poll_interval"),
    "a default policy without a separator": ("    policy: {separator: ''}",
        "flows[0].policy.separator (line 6): is empty\n  expected: text, or kind: identity"),
    "heartbeats without a separator": ("    policy: {kind: identity, separator: ''}",
        "flows[0].canary.carrier (line 5): 'heartbeats' is not replicated with an empty "
        "separator\n  expected: topic or off\n"
        "  next step: set carrier to topic if the engine replicates that topic, otherwise to "
        "off"),
    "a separator that is part of an alias": ("    policy: {separator: s}",
        "flows[0].policy.separator (line 6): 's' is part of the alias 'us'\n"
        "  expected: a separator that no alias contains: MirrorMaker 2 splits topic names at "
        "it\n  next step: change the alias or the separator in MirrorMaker 2 and here"),
    "heartbeats through an engine that copies none": (
        "    engine: dual-produce\n    canary: {carrier: heartbeats}",
        "flows[0].canary.carrier (line 7): 'heartbeats' is not replicated by the engine "
        "dual-produce\n  expected: topic or off\n"
        "  next step: set carrier to topic if the engine replicates that topic, otherwise to "
        "off"),
}  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), FLOW_MISTAKES.values(), ids=[*FLOW_MISTAKES])
def test_invalid_flow_setting_is_reported(line: str, expected: str) -> None:
    assert one(f"{CLUSTERS}{FLOWS}{line}\n") == expected


FLOW_NAMES = {
    "an unknown alias near a known one": ("us->EU",
        "flows[0].flow (line 5): 'us->EU' refers to the unknown cluster 'EU'\n"
        "  expected: one of us, eu\n  next step: did you mean 'eu'?"),
    "an unknown alias near none": ("us->tokyo",
        "flows[0].flow (line 5): 'us->tokyo' refers to the unknown cluster 'tokyo'\n"
        "  expected: one of us, eu\n  next step: add tokyo under clusters"),
    "a flow to itself": ("us->us",
        "flows[0].flow (line 5): 'us->us' has the same source and target\n"
        "  expected: source->target with two aliases from clusters, as in us->eu"),
    "no arrow": ("us to eu", "flows[0].flow (line 5): 'us to eu' is not a flow\n"
        "  expected: source->target with two aliases from clusters, as in us->eu"),
}  # fmt: skip


@pytest.mark.parametrize(("label", "expected"), FLOW_NAMES.values(), ids=[*FLOW_NAMES])
def test_invalid_flow_name_is_reported(label: str, expected: str) -> None:
    assert one(f"{CLUSTERS}flows:\n  - flow: {label}\n") == expected


def test_duplicate_flow_is_reported() -> None:
    assert one(f"{CLUSTERS}flows: [{{flow: us->eu}}, {{flow: us -> eu}}]") == (
        "flows[1].flow (line 4): 'us->eu' is already configured as flows[0]\n"
        "  expected: each flow once\n  next step: merge the two entries"
    )


def test_flows_with_the_same_id_are_reported() -> None:
    text = """\
clusters: {a.b: &any {bootstrap_servers: "x:1"}, a-b: *any, c: *any}
defaults: {policy: {separator: "_"}}
flows: [{flow: a.b->c}, {flow: a-b->c}]
"""
    assert one(text) == (
        "flows[1].flow (line 3): the flows a-b->c, a.b->c share the id 'a-b-to-c'\n"
        "  expected: aliases that differ in more than case and punctuation\n"
        "  next step: rename an alias"
    )


def test_flows_with_the_same_offset_syncs_topic_are_reported() -> None:
    text = f"{CLUSTERS}flows: [{{flow: us->eu}}, {{flow: eu->us, offset_syncs_location: target}}]"
    assert one(text) == (
        "flows[1].offset_syncs_location (line 4): the flows eu->us, us->eu share the topic "
        "'mm2-offset-syncs.eu.internal' on 'us'\n"
        "  expected: one offset-syncs topic per flow, otherwise their offsets cannot be "
        "translated\n"
        "  next step: set the same offset-syncs.topic.location for both flows in "
        "MirrorMaker 2 and here"
    )


def test_flows_with_different_separators_have_different_offset_syncs_topics() -> None:
    flows = "{flow: us->eu, policy: {separator: _}}, {flow: eu->us, offset_syncs_location: target}"
    assert len(load_config(f"{CLUSTERS}flows: [{flows}]").flows) == 2


def test_canary_topic_in_a_replication_cycle_is_reported() -> None:
    text = f"""{CLUSTERS}
defaults: {{policy: {{kind: identity}}, canary: {{carrier: topic}}}}
flows: [{{flow: us->eu}}, {{flow: eu->us}}]
"""
    assert one(text) == (
        "flows[1].canary.topic (line 6): 'mm2slo.canary' is replicated in a cycle: us->eu has "
        "the same canary topic, and the identity policy does not mark the source\n"
        "  expected: a topic other than that of the reverse flow\n"
        "  next step: use one topic per flow, and include each in the topics of its own flow only"
    )
