"""`slo:`: default objectives, exact targets, invalid objectives, and the rendered section."""

from pathlib import Path

import pytest

from mm2slo_core.config.config_document import ConfigError, Resolvers
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import Config, default_objective_rules, notices
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.objective import DAY, Severity, subsumes
from mm2slo_core.objectives.objective_documents import render_slo_section
from mm2slo_core.quantity_text import percent_text
from mm2slo_core.topology import Flow

REFERENCE = Path(__file__).parents[3] / "docs" / "reference-config.yaml"
CLUSTERS = """\
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
"""
FLOWS = "flows: [{flow: us->eu}, {flow: eu->us, canary: {interval: 10s}}]\n"
ALERTING = "alerting: {slack: [{name: mm2-alerts, webhook_url_file: /run/url}]}\n"
PAGE, TICKET = Severity.PAGE, Severity.TICKET


def load(slo: str = "{}", flows: str = FLOWS) -> Config:
    return load_config(f"{CLUSTERS}{flows}{ALERTING}slo: {slo}\n")


def report(slo: str, flows: str = FLOWS) -> str:
    with pytest.raises(ConfigError) as refused:
        load(slo, flows)
    return str(refused.value).removeprefix("mm2slo.yaml: ")


def objectives_of(config: Config, label: str) -> dict[tuple[str, str], tuple[float, Severity]]:
    flow = Flow.parse(label)
    return {
        (each.key.sli.value, each.key.tier): (each.target, each.max_severity)
        for each in config.objectives
        if each.flow == flow
    }


ANY_FLOW = {
    ("availability", "all"): (0.999, PAGE),
    ("latency", "10s"): (0.99, TICKET),
    ("latency", "60s"): (0.999, PAGE),
    ("completeness", "all"): (0.9999, TICKET),
    ("data_freshness", "default"): (0.995, PAGE),
    ("checkpoint_freshness", "all"): (0.99, TICKET),
}
OF_THE_CANARY_TOPIC = {
    (name, "all"): (0.999, TICKET) for name in ("uniqueness", "order", "affinity")
}


def test_objectives_without_slo_section_are_the_defaults() -> None:
    config = load_config(CLUSTERS + FLOWS)
    assert objectives_of(config, "us->eu") == objectives_of(config, "eu->us") == ANY_FLOW
    assert {rule.window for rule in config.objective_rules} == {28 * DAY}
    assert {rule.flows for rule in config.objective_rules} == {("*",)}
    assert {(rule.owner, rule.channel) for rule in config.objective_rules} == {("", "")}
    assert config.objectives == load("{}").objectives


def test_default_objective_rules_cover_each_indicator_once() -> None:
    rules = {(rule.key.sli.value, rule.key.tier): (rule.target, rule.max_severity)
             for rule in default_objective_rules()}  # fmt: skip
    assert rules == ANY_FLOW | OF_THE_CANARY_TOPIC
    assert len(rules) == len(default_objective_rules())


@pytest.mark.parametrize(
    ("flow", "expected"),
    [
        ("canary: {carrier: topic}", ANY_FLOW | OF_THE_CANARY_TOPIC),
        (
            "canary: {carrier: off}",
            {key: ANY_FLOW[key] for key in ANY_FLOW if key[0] not in {"latency", "completeness"}},
        ),
        ("engine: other", {}),
        (
            "engine: other, canary: {carrier: topic}",
            {key: ANY_FLOW[key] for key in ANY_FLOW if "freshness" not in key[0]}
            | OF_THE_CANARY_TOPIC,
        ),
        (
            (
                "canary: {latency_tiers: [1s, 5s, 60s]}, freshness: "
                '[{name: gold, topics: ["g.*"]}, {name: rest}]'
            ),
            {key: ANY_FLOW[key] for key in ANY_FLOW if key[1] == "all"}
            | {
                ("latency", "1s"): (0.99, TICKET),
                ("latency", "5s"): (0.995, TICKET),
                ("latency", "60s"): (0.999, PAGE),
                ("data_freshness", "gold"): (0.995, PAGE),
                ("data_freshness", "rest"): (0.995, PAGE),
            },
        ),
    ],
)
def test_objectives_of_a_flow_match_its_published_indicators(
    flow: str, expected: dict[tuple[str, str], tuple[float, Severity]]
) -> None:
    assert objectives_of(load("{}", f"flows: [{{flow: us->eu, {flow}}}]\n"), "us->eu") == expected


def test_objectives_in_read_only_mode_exclude_canary_indicators() -> None:
    config = load_config(CLUSTERS + FLOWS + "exporter: {read_only: true}\n")
    assert {key[0] for key in objectives_of(config, "us->eu")} == {
        "availability", "data_freshness", "checkpoint_freshness",
    }  # fmt: skip


def test_objective_rules_of_flows_with_different_tiers_are_separate() -> None:
    config = load("{}", "flows: [{flow: us->eu}, "
                  "{flow: eu->us, canary: {latency_tiers: [5s, 10s]}}]\n")  # fmt: skip
    rules = [rule for rule in config.objective_rules if rule.key == SliKey(Sli.LATENCY, "10s")]
    assert [(rule.flows, rule.target, rule.max_severity) for rule in rules] == [
        (("us->eu",), 0.99, TICKET),
        (("eu->us",), 0.999, PAGE),
    ]


def test_default_objective_that_one_event_would_breach_is_lowered_with_notice() -> None:
    config = load("{}", "flows: [{flow: us->eu}, {flow: eu->us, canary: {interval: 60s}}]\n")
    # 1,440 canaries a day: 2.8 x 0.01 % of them are 0.4 of one, 2.8 x 0.05 % are 2.
    assert objectives_of(config, "eu->us")["completeness", "all"] == (0.9995, TICKET)
    assert objectives_of(config, "us->eu")["completeness", "all"] == (0.9999, TICKET)
    # 60 an hour: 13.44 x 0.1 % of them are 0.8 of one.
    assert objectives_of(config, "eu->us")["availability", "all"] == (0.995, PAGE)
    lowered = [each for each in notices(config) if "instead of" in each]
    assert lowered[0] == (
        "eu->us: availability has the objective 99.5% instead of the default 99.9%, "
        "which one bad event would breach at this event rate"
    )
    assert [each.split(" has ")[0] for each in lowered] == [
        "eu->us: availability", "eu->us: latency 60s", "eu->us: completeness",
    ]  # fmt: skip


def test_default_objective_with_too_few_events_is_omitted_with_notice() -> None:
    slow = "flows: [{flow: us->eu}, {flow: eu->us, slice: 36000s}]\n"
    config = load("{}", slow)
    assert ("data_freshness", "default") not in objectives_of(config, "eu->us")
    assert objectives_of(config, "us->eu")["data_freshness", "default"] == (0.995, PAGE)
    assert any("data_freshness default has no objective" in each for each in notices(config))


@pytest.mark.parametrize(
    ("written", "target", "shown"),
    [
        ("99.9%", 0.999, "99.9%"),
        ("99.9 %", 0.999, "99.9%"),
        ("0.999", 0.999, "99.9%"),
        ('"0.999"', 0.999, "99.9%"),
        ("99%", 0.99, "99%"),
        ("99.95%", 0.9995, "99.95%"),
        ("60%", 0.6, "60%"),
    ],
)
def test_target_has_no_rounding_error(written: str, target: float, shown: str) -> None:
    config = load(f"{{objectives: [{{sli: availability, target: {written}}}]}}")
    rule = config.objective_rules[0]
    assert repr(rule.target) == repr(target)
    assert percent_text(rule.target) == shown


def test_objectives_use_the_first_match_and_inherited_settings() -> None:
    config = load(
        "{window: 7d, owner: Streaming team, channel: mm2-alerts, objectives: ["
        "{flows: us->*, sli: availability, target: 99.5%, max_severity: ticket,"
        " owner: ops@example.com},"
        "{sli: availability, target: 99%, window: 14d},"
        "{sli: latency, tier: 1m, target: 99.5%}, {sli: latency, target: 98%}]}"
    )
    found = {(each.flow.label, each.key): each for each in config.objectives}
    one = found["us->eu", SliKey(Sli.AVAILABILITY)]
    other = found["eu->us", SliKey(Sli.AVAILABILITY)]
    assert (one.target, one.window, one.max_severity, one.owner) == (
        0.995, 7 * DAY, TICKET, "ops@example.com",
    )  # fmt: skip
    assert (other.target, other.window, other.max_severity, other.owner, other.channel) == (
        0.99, 14 * DAY, PAGE, "Streaming team", "mm2-alerts",
    )  # fmt: skip
    fast, slow = (found["us->eu", SliKey(Sli.LATENCY, tier)] for tier in ("10s", "60s"))
    # Without max_severity, that of the default for the same tier applies.
    assert (fast.target, fast.max_severity, slow.target, slow.max_severity) == (
        0.98,
        TICKET,
        0.995,
        PAGE,
    )
    assert found["us->eu", SliKey(Sli.COMPLETENESS)].window == 7 * DAY


REFUSED = {
    "a target that one event breaches": ("{objectives: [{sli: availability, target: 99.99%}]}",
        "slo.objectives[0].target (line 4): 99.99% is breached by one bad event: eu->us has "
        "360 events in 1h, and the pair fast alerts above 0.48 bad events\n"
        "  expected: at least 744 events in 1h\n"
        "  next step: lower the target to 99.95%, or set max_severity to ticket, or shorten "
        "canary.interval to 4.8s"),
    "a target that one slice breaches": ("{objectives: [{sli: data_freshness, target: 99.99%}]}",
        "slo.objectives[0].target (line 4): 99.99% is breached by one bad event: us->eu has "
        "240 events in 1h, and the pair fast alerts above 0.32 bad events\n"
        "  expected: at least 744 events in 1h\n"
        "  next step: lower the target to 99.95%, or set max_severity to ticket, or set "
        "expected_events if there are many partitions or groups"),
    "too few expected events": (
        "{objectives: [{flows: us->eu, sli: availability, target: 99.9%, expected_events: 5}]}",
        "slo.objectives[0].target (line 4): 99.9% is breached by one bad event: us->eu has 5 "
        "events in 1h, and the pair fast alerts above 0.067 bad events\n"
        "  expected: at least 74 events in 1h\n"
        "  next step: lower the target to 95%, or correct expected_events"),
    "a target for which no pair can fire": (
        "{window: 90d, objectives: [{sli: availability, target: 50%}]}",
        "slo.objectives[0].target (line 4): 50% over 90d can never alert: the error ratio "
        "would have to exceed 2160% (fast), 900% (steady), 450% (slow), 150% (creeping)\n"
        "  expected: a target above 66.7%\n  next step: raise the target or shorten the window"),
    "a target of 100%": ("{objectives: [{sli: availability, target: 100%}]}",
        "slo.objectives[0].target (line 4): '100%' leaves no error budget: one bad event would "
        "exhaust it for the whole window\n"
        "  expected: a percentage between 0% and 100%, such as 99.9%\n"
        "  next step: write 99.99%; alerts on lost records fire for single records"),
    "a target of zero": ("{objectives: [{sli: availability, target: 0%}]}",
        "slo.objectives[0].target (line 4): '0%' is not above 0%\n"
        "  expected: a percentage between 0% and 100%, such as 99.9%\n  next step: write 99.9%"),
    "a negative target": ("{objectives: [{sli: availability, target: -0.5}]}",
        "slo.objectives[0].target (line 4): -0.5 is not above 0%\n"
        "  expected: a percentage between 0% and 100%, such as 99.9%\n  next step: write 99.9%"),
    "a percentage without its sign": ("{objectives: [{sli: availability, target: 99.95}]}",
        "slo.objectives[0].target (line 4): 99.95 is above 100%\n"
        "  expected: a percentage between 0% and 100%, such as 99.9%\n"
        "  next step: write 99.95%"),
    "a short window": ("{window: 2d}",
        "slo.window (line 4): '2d' is shorter than 3d, the long window of the window pair "
        "creeping\n  expected: from 3d to 90d\n"
        "  next step: write 28d, or 7d for quick feedback"),
    "a long window": ("{objectives: [{sli: availability, target: 99%, window: 91d}]}",
        "slo.objectives[0].window (line 4): '91d' is longer than 90d, and Prometheus would "
        "have to retain samples for that long\n  expected: from 3d to 90d\n"
        "  next step: write 28d; reports cover months and quarters"),
    "a window that is not a multiple of steps": ("{window: 259201s}",
        "slo.window (line 4): '259201s' is not a multiple of 5m, the step of the recorded "
        "counts\n  expected: whole days or hours\n  next step: write 28d"),
    "an unknown indicator": ("{objectives: [{sli: availabilty, target: 99%}]}",
        "slo.objectives[0].sli (line 4): 'availabilty' is not an indicator\n"
        "  expected: one of availability, latency, data_freshness, completeness, uniqueness, "
        "order, affinity, checkpoint_freshness\n  next step: did you mean 'availability'?"),
    "an unknown tier": ("{objectives: [{sli: latency, tier: 16s, target: 99%}]}",
        "slo.objectives[0].tier (line 4): '16s' is not a tier of latency in us->eu, eu->us\n"
        "  expected: one of 10s, 60s\n  next step: did you mean '60s'?"),
    "an unknown class": ("{objectives: [{sli: data_freshness, tier: gold, target: 99%}]}",
        "slo.objectives[0].tier (line 4): 'gold' is not a tier of data_freshness in us->eu, "
        "eu->us\n  expected: one of default\n  next step: remove tier to cover all of them"),
    "an indicator of another carrier": ("{objectives: [{sli: order, target: 99%}]}",
        "slo.objectives[0].sli (line 4): order is not published for us->eu, eu->us\n"
        "  expected: one of availability, latency, completeness, data_freshness, "
        "checkpoint_freshness\n"
        "  next step: set canary.carrier to topic; other carriers cannot measure it"),
    "an unknown flow": ("{objectives: [{flows: [us->ue], sli: latency, target: 99%}]}",
        "slo.objectives[0].flows[0] (line 4): 'us->ue' matches no flow\n"
        "  expected: a pattern that matches one of us->eu, eu->us\n"
        "  next step: did you mean 'us->eu'?"),
    "an invalid flow pattern": (
        '{objectives: [{flows: ["us=>[eu]"], sli: latency, target: 99%}]}',
        "slo.objectives[0].flows[0] (line 4): 'us=>[eu]' is not a flow pattern\n"
        "  expected: source->target, with * for any text and ? for any character, or *\n"
        "  next step: write us->eu, us->* or *, for example"),
    "a duplicate": ("{objectives: [{sli: latency, tier: 10s, target: 99%}, "
        "{sli: latency, tier: 10s, target: 98%}]}",
        "slo.objectives[1].flows (line 4): have no effect: slo.objectives[0] already covers "
        "these flows and this indicator\n"
        "  expected: the narrower pattern before the wider one, and each flow and indicator "
        "once\n  next step: move the objective up, or remove it"),
    "a pattern after a wider one": (
        "{objectives: [{sli: latency, target: 99%}, {sli: availability, target: 99%}, "
        "{flows: us->*, sli: latency, tier: 10s, target: 98%}]}",
        "slo.objectives[2].flows (line 4): have no effect: slo.objectives[0] already covers "
        "these flows and this indicator\n"
        "  expected: the narrower pattern before the wider one, and each flow and indicator "
        "once\n  next step: move the objective up, or remove it"),
    "an unknown channel": ("{channel: mm2-alert}",
        "slo.channel (line 4): unknown channel 'mm2-alert'\n  expected: one of mm2-alerts\n"
        "  next step: did you mean 'mm2-alerts'?"),
    "an unknown channel of one objective": (
        "{objectives: [{sli: latency, target: 99%, channel: database}]}",
        "slo.objectives[0].channel (line 4): unknown channel 'database'\n"
        "  expected: one of mm2-alerts\n  next step: add database under alerting.slack"),
    "no expected events": ("{objectives: [{sli: latency, target: 99%, expected_events: 0}]}",
        "slo.objectives[0].expected_events (line 4): 0 is not a number of events per hour\n"
        "  expected: a number above 0, as in 3600"),
    "an unknown key": ("{objectives: [{sli: latency, targt: 99%, target: 99%}]}",
        "slo.objectives[0].targt (line 4): unknown key\n"
        "  expected: one of flows, sli, tier, target, window, max_severity, owner, channel, "
        "expected_events\n  next step: did you mean 'target'?"),
}  # fmt: skip


@pytest.mark.parametrize(("slo", "expected"), REFUSED.values(), ids=[*REFUSED])
def test_invalid_objective_is_reported(slo: str, expected: str) -> None:
    assert report(slo) == f"1 problem\n{expected}"


@pytest.mark.parametrize(
    ("owner", "what"),
    [
        ("a<b", "'a<b' contains '<'"),
        ("R&D", "'R&D' contains '&'"),
        ("`x`", "'`x`' contains '`'"),
        ("{{ .X }}", "'{{ .X }}' contains '{', '}'"),
        ("a\nb", "'a\\nb' contains '\\n'"),
        ('say \\"no\\"', "'say \"no\"' contains '\"'"),
        ("*bold*", "'*bold*' contains '*'"),
        ("a|b", "'a|b' contains '|'"),
        ("@here", "'@here' starts or ends with a special character"),
        ("x\u2028y", "'x\\u2028y' contains '\\u2028'"),
        ("y" * 4000, f"'{'y' * 79}... has 4,000 characters"),
    ],
)
def test_owner_with_special_characters_is_reported(owner: str, what: str) -> None:
    text = report('{owner: "' + owner.replace("\n", "\\n") + '"}')
    assert text.startswith(f"1 problem\nslo.owner (line 4): {what}")
    assert "  expected: " in text


@pytest.mark.parametrize("owner", ["Streaming", "ops@example.com", "Team A/B #2", "D\u00e9po-1_x"])
def test_owner_with_plain_characters_is_accepted(owner: str) -> None:
    assert load(f"{{owner: '{owner}'}}").slo.owner == owner


def test_several_invalid_objectives_are_reported_together() -> None:
    text = report(
        "{window: 1d, channel: unknown, objectives: [{sli: order, target: 99%}, "
        "{sli: latency, target: 200%}]}"
    )
    assert text.splitlines()[0] == "3 problems"
    assert "slo.window" in text
    assert "slo.objectives[0].sli" in text
    assert "slo.objectives[1].target" in text


def test_objective_of_an_invalid_flow_is_not_reported() -> None:
    text = report("{objectives: [{sli: latency, tier: 5s, target: 99%}]}",
                  "flows: [{flow: us->eu, canary: {latency_tiers: soon}}]\n")  # fmt: skip
    assert text.startswith("1 problem\nflows[0].canary.latency_tiers")


def test_objectives_with_the_same_id_are_reported() -> None:
    text = report("{}", 'flows: [{flow: us->eu, freshness: [{name: Gold, topics: ["g"]}, '
                  "{name: gold}]}]\n")  # fmt: skip
    assert text == (
        "1 problem\nflows[0].freshness (line 2): us->eu data_freshness 'gold' and us->eu "
        "data_freshness 'Gold' share the id 'us-to-eu-data-freshness-gold'\n"
        "  expected: names that differ in more than case and punctuation\n"
        "  next step: rename a freshness class or an alias"
    )


def test_notices_contain_window_pairs_that_cannot_fire() -> None:
    config = load("{objectives: [{flows: us->eu, sli: availability, target: 80%}]}")
    assert (
        "us->eu: availability at 80%: these window pairs cannot fire and are omitted: "
        "fast (error ratio above 269%), steady (error ratio above 112%)"
    ) in notices(config)
    assert not [each for each in notices(load("{}")) if "cannot fire" in each]


def test_notices_contain_windows_beyond_prometheus_retention() -> None:
    assert (
        "slo: Prometheus must retain samples for more than 60d; the shipped configuration "
        "retains them for 35d"
    ) in notices(load("{window: 60d}"))


def test_strict_target_with_many_expected_events_is_accepted() -> None:
    config = load("{objectives: [{sli: data_freshness, target: 99.99%, expected_events: 240000}]}")
    assert objectives_of(config, "us->eu")["data_freshness", "default"] == (0.9999, PAGE)


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ("*", "us->eu", True),
        ("us->*", "us->*", True),
        ("us->*", "us->e?", True),
        ("u?->*", "us->eu", True),
        ("us->*?", "us->?*", True),
        ("us->?", "us->*", False),
        ("us->??*", "us->*", False),
        ("us->eu", "us->*", False),
        ("us->e*", "us->?u", False),
        ("us->eu", "us->eu*", False),
        ("us->e?", "us->e?*", False),
        ("us->??", "us->?*", False),
    ],
)
def test_subsumes_compares_flow_patterns(wide: str, narrow: str, *, expected: bool) -> None:
    assert subsumes(wide, narrow) is expected


def test_reference_file_contains_the_default_objectives() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    reference = load_config(text, resolvers=Resolvers(env=str, file=str))
    smallest = load_config(CLUSTERS + "flows: [{flow: us->eu}]\n")
    assert reference.objectives == smallest.objectives
    assert len(reference.slo.objectives) == len(reference.objectives)
    assert (reference.slo.window, reference.slo.owner, reference.slo.channel) == (
        smallest.slo.window, None, None,
    )  # fmt: skip
    assert reference.alerting.links == smallest.alerting.links
    assert reference.alerting.maintenance == smallest.alerting.maintenance


WITH_CLASSES = """\
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows:
  - {flow: us->eu, canary: {carrier: topic}, freshness: [{name: Gold, topics: [g]}, {name: rest}]}
  - {flow: eu->us, canary: {latency_tiers: [0.5s, 60s]}}
alerting: {slack: [{name: mm2, webhook_url_file: /run/url}, {name: db, webhook_url_file: /u}]}
"""
SECTION = """\
slo:
  owner: Team A
  objectives:
    - {flows: us->eu, sli: availability, target: 99.95%, channel: db}
    - {sli: checkpoint_freshness, target: 60%, window: 14d}
    - {flows: us->eu, sli: data_freshness, tier: Gold, target: 80%, max_severity: page}
"""


def test_slo_section_of_all_objectives_loads_as_the_same_objectives() -> None:
    objectives = load_config(WITH_CLASSES + SECTION).objectives
    assert len(objectives) == 16
    assert load_config(WITH_CLASSES + render_slo_section(objectives)).objectives == objectives
