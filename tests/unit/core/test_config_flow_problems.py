"""Every mistake in a flow, with the exact words that the user reads."""

from __future__ import annotations

import pytest

from mm2slo_core.config import ConfigError, load_config

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
    """Path, line and words of each problem, without the file's head line."""
    with pytest.raises(ConfigError) as refused:
        load_config(text)
    return [str(problem) for problem in refused.value.problems]


def one(text: str) -> str:
    (problem,) = report(text)
    return problem


FLOW_MISTAKES = {
    "an unknown key": (
        "    canary: {intervall: 1s}",
        (
            "flows[0].canary.intervall (line 6): unknown key\n"
            "  expected: one of carrier, topic, interval, deadline, latency_tiers\n"
            "  next step: did you mean 'interval'?"
        ),
    ),
    "a word for a duration": (
        "    canary: {interval: soon}",
        (
            "flows[0].canary.interval (line 6): 'soon' is not a duration\n"
            "  expected: a duration such as 500ms, 5s, 10m, 1h or 35d, or a number of seconds\n"
            "  next step: write for example 5s"
        ),
    ),
    "a duration below its bound": (
        "    canary: {interval: 10ms}",
        (
            "flows[0].canary.interval (line 6): '10ms' is too short\n"
            "  expected: a duration of at least 100ms"
        ),
    ),
    "a boolean for a duration": (
        "    slice: true",
        (
            "flows[0].slice (line 6): True is not a duration\n"
            "  expected: a duration such as 500ms, 5s, 10m, 1h or 35d, or a number of seconds\n"
            "  next step: write for example 5s"
        ),
    ),
    "text for a flag": (
        "    exactly_once: yes",
        "flows[0].exactly_once (line 6): 'yes' is of the wrong type\n  expected: true or false",
    ),
    "a value of no choice": (
        "    isolation: serializable",
        (
            "flows[0].isolation (line 6): 'serializable' is not one of the choices\n"
            "  expected: 'read_uncommitted' or 'read_committed'"
        ),
    ),
    "text where a section belongs, which is not quoted": (
        "    policy: identity",
        "flows[0].policy (line 6): the value is of the wrong type\n  expected: a mapping with keys",
    ),
    "a number below its bound": (
        "    readiness: {max_redelivery_records: -1}",
        (
            "flows[0].readiness.max_redelivery_records (line 6): -1 is too small\n"
            "  expected: at least 0"
        ),
    ),
    "a broken regular expression": (
        '    topics: ["orders.*", "pay(ments"]',
        (
            "flows[0].topics[1] (line 6): 'pay(ments' cannot select names: is not a regular "
            "expression: missing ), unterminated subpattern at position 3. A comma ends an entry "
            "of a list, inside {..} as well\n"
            "  expected: a regular expression that matches whole names, such as orders.*"
        ),
    ),
    "a comma inside an expression": (
        '    groups: ["a{1,3}"]',
        (
            "flows[0].groups[0] (line 6): 'a{1,3}' has a comma, where MirrorMaker 2 splits "
            "its lists\n"
            "  expected: one regular expression per list entry\n"
            "  next step: write two entries, or the same expression without a comma"
        ),
    ),
    "a topic name that Kafka refuses": (
        "    connect: {status_topic: my status}",
        (
            "flows[0].connect.status_topic (line 6): 'my status' is not a topic name\n"
            "  expected: 1 to 249 letters, digits, dots, underscores and hyphens"
        ),
    ),
    "freshness that leaves topics without a class": (
        '    freshness: [{name: gold, topics: ["gold.*"]}]',
        (
            "flows[0].freshness (line 6): leaves topics without a class\n"
            '  expected: a last class with topics: [".*"]\n'
            '  next step: add {name: default, topics: [".*"], threshold: 60s} as the last one'
        ),
    ),
    "a freshness class that hides those after it": (
        "    freshness: [{name: a}, {name: b}]",
        (
            "flows[0].freshness[0] (line 6): matches every topic, so the classes after it never "
            "apply\n  expected: the class that matches all as the last one"
        ),
    ),
    "two freshness classes of one name": (
        '    freshness: [{name: a, topics: ["x"]}, {name: a}]',
        "flows[0].freshness (line 6): has 2 classes named 'a'\n  expected: one name each",
    ),
    "no freshness class at all": (
        "    freshness: []",
        "flows[0].freshness (line 6): a list has no entry\n  expected: at least one",
    ),
    "latency tiers out of order": (
        "    canary: {latency_tiers: [60s, 10s]}",
        (
            "flows[0].canary.latency_tiers (line 6): are not ascending\n"
            "  expected: each threshold once, smallest first"
        ),
    ),
    "a latency tier beyond the deadline": (
        "    canary: {latency_tiers: [10s, 2m]}",
        (
            "flows[0].canary.latency_tiers (line 6): 2m is longer than the deadline\n"
            "  expected: thresholds up to 1m: a canary is settled by then\n"
            "  next step: remove the threshold or lengthen deadline"
        ),
    ),
    "a canary interval beyond the deadline": (
        "    canary: {interval: 2m}",
        "flows[0].canary.interval (line 6): 2m is longer than the deadline\n  expected: up to 1m",
    ),
    "a slice without a sample": (
        "    slice: 2s",
        (
            "flows[0].slice (line 6): 2s is shorter than exporter.poll_interval\n"
            "  expected: at least 5s, so that each slice has a sample\n"
            "  next step: lengthen slice or shorten poll_interval"
        ),
    ),
    "a separator that is part of an alias": (
        "    policy: {separator: s}",
        (
            "flows[0].policy.separator (line 6): 's' is part of the alias 'us'\n"
            "  expected: a separator that no alias contains: MirrorMaker 2 finds the source by it\n"
            "  next step: change the alias or the separator in MirrorMaker 2 and here"
        ),
    ),
    "heartbeats through an engine that copies none": (
        "    engine: dual-produce\n    canary: {carrier: heartbeats}",
        (
            "flows[0].canary.carrier (line 7): 'heartbeats' is not copied by the engine "
            "dual-produce\n"
            "  expected: topic or off\n"
            "  next step: set carrier to topic if that topic is copied, else to off"
        ),
    ),
}


@pytest.mark.parametrize(("line", "expected"), FLOW_MISTAKES.values(), ids=[*FLOW_MISTAKES])
def test_a_mistake_in_a_flow_is_told_exactly(line: str, expected: str) -> None:
    assert one(f"{CLUSTERS}{FLOWS}{line}\n") == expected


FLOW_NAMES = {
    "an unknown alias near a known one": (
        "us->EU",
        (
            "flows[0].flow (line 5): 'us->EU' names the unknown cluster 'EU'\n"
            "  expected: one of us, eu\n  next step: did you mean 'eu'?"
        ),
    ),
    "an unknown alias near none": (
        "us->tokyo",
        (
            "flows[0].flow (line 5): 'us->tokyo' names the unknown cluster 'tokyo'\n"
            "  expected: one of us, eu\n  next step: add tokyo under clusters"
        ),
    ),
    "a flow to itself": (
        "us->us",
        (
            "flows[0].flow (line 5): 'us->us' leads a cluster to itself\n"
            "  expected: source->target with two aliases from clusters, as in us->eu"
        ),
    ),
    "no arrow": (
        "us to eu",
        (
            "flows[0].flow (line 5): 'us to eu' is not a flow\n"
            "  expected: source->target with two aliases from clusters, as in us->eu"
        ),
    ),
}


@pytest.mark.parametrize(("label", "expected"), FLOW_NAMES.values(), ids=[*FLOW_NAMES])
def test_a_wrong_flow_name_is_told_exactly(label: str, expected: str) -> None:
    assert one(f"{CLUSTERS}flows:\n  - flow: {label}\n") == expected


def test_a_flow_that_stands_twice_is_told_where_it_stood_first() -> None:
    assert one(f"{CLUSTERS}flows: [{{flow: us->eu}}, {{flow: us -> eu}}]") == (
        "flows[1].flow (line 4): 'us->eu' is configured a second time, after flows[0]\n"
        "  expected: each flow once\n  next step: merge the two entries"
    )


def test_two_flows_with_one_id_are_refused() -> None:
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


def test_two_flows_that_write_one_offset_syncs_topic_are_refused() -> None:
    text = f"{CLUSTERS}flows: [{{flow: us->eu}}, {{flow: eu->us, offset_syncs_location: target}}]"
    assert one(text) == (
        "flows[1].offset_syncs_location (line 4): the flows eu->us, us->eu share the topic "
        "'mm2-offset-syncs.eu.internal' on 'us'\n"
        "  expected: one offset-syncs topic per flow, else neither can be translated\n"
        "  next step: set offset-syncs.topic.location alike for both flows, in MirrorMaker 2 "
        "and here"
    )


def test_two_flows_with_different_separators_write_two_offset_syncs_topics() -> None:
    flows = "{flow: us->eu, policy: {separator: _}}, {flow: eu->us, offset_syncs_location: target}"
    assert len(load_config(f"{CLUSTERS}flows: [{flows}]").flows) == 2


def test_a_canary_topic_in_a_circle_is_refused_under_the_identity_policy() -> None:
    text = f"""{CLUSTERS}
defaults: {{policy: {{kind: identity}}, canary: {{carrier: topic}}}}
flows: [{{flow: us->eu}}, {{flow: eu->us}}]
"""
    assert one(text) == (
        "flows[1].canary.topic (line 6): 'mm2slo.canary' is copied in a circle: us->eu has it, "
        "too, and the identity policy knows no source\n"
        "  expected: another topic than that of the reverse flow\n"
        "  next step: name one topic per flow, and include each in its own flow's topics only"
    )
