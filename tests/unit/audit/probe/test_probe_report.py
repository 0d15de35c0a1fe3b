"""The report of a probe, and its YAML."""

import io
from collections import Counter

from rich.console import Console

from mm2slo_audit.record_probe import Probe, format_yaml, suggest_identities, write_probe_report
from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason
from mm2slo_core.audit.transformation_probe import Differences
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.topology import Flow

US_EU = Flow("us", "eu")
MASKED = Probe(
    US_EU,
    "orders",
    "us.orders",
    Differences(
        1000,
        value=1000,
        headers=1000,
        header_names=Counter({"trace": 1000}),
        timestamp=3,
        unmatched=2,
    ),
)
PLAIN = Probe(US_EU, "payments", "us.payments", Differences(400))
EMPTY = Probe(US_EU, "clicks", "us.clicks", Differences())


def printed(*probes: Probe, missing: tuple[NotAudited, ...] = ()) -> str:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    write_probe_report(console, probes, missing)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_format_yaml_gives_valid_configuration_for_all_topics_of_flow() -> None:
    text = format_yaml(suggest_identities([MASKED, PLAIN]))
    assert text in printed(MASKED, PLAIN)
    clusters = 'clusters: {us: {bootstrap_servers: "a:1"}, eu: {bootstrap_servers: "b:1"}}\n'
    (flow,) = load_config(clusters + text).flows
    assert flow.audit.identity.value is False
    assert flow.audit.identity.headers is True
    assert flow.audit.identity.ignored_headers == ("trace",)


def test_probe_report_rare_difference_is_shown_and_kept_in_identity() -> None:
    text = printed(MASKED)
    assert "the timestamp differs in 3 of 1,000 records: too rare" in " ".join(text.split())
    assert "timestamp: false" not in text
    assert "copies without a matching original: 2" in text


def test_probe_report_equal_copies_suggests_no_change() -> None:
    assert printed(PLAIN).endswith(
        "copies equal their originals: no change of the identity needed\n"
    )


def test_probe_report_lists_topics_not_compared() -> None:
    missing = NotAudited("us.gone", NotAuditedReason.TARGET_MISSING, "us.gone does not exist on eu")
    text = printed(EMPTY, missing=(missing,))
    assert "us->eu clicks: no record could be compared" in text
    assert "us.gone: target_missing: us.gone does not exist on eu" in text
