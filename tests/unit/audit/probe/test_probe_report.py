"""What a probe says, and the YAML it gives."""

from __future__ import annotations

import io

from rich.console import Console

from mm2slo_audit.probe.probe_report import format_yaml, suggestion, write
from mm2slo_audit.probe.record_probe import Probe
from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason
from mm2slo_core.audit.transformation_probe import Differences
from mm2slo_core.config import load_config
from mm2slo_core.topology import Flow

US_EU = Flow("us", "eu")
MASKED = Probe(
    US_EU,
    "orders",
    "us.orders",
    Differences(1000, value=1000, headers=1000, header_names={"trace": 1000}, timestamp=3, alone=2),
)
PLAIN = Probe(US_EU, "payments", "us.payments", Differences(400))
EMPTY = Probe(US_EU, "clicks", "us.clicks", Differences())


def told(*probes: Probe, missing: tuple[NotAudited, ...] = ()) -> str:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    write(console, probes, missing)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_suggestion_can_be_pasted_and_covers_all_topics_of_a_flow() -> None:
    text = format_yaml(suggestion([MASKED, PLAIN]))
    assert text in told(MASKED, PLAIN)
    clusters = 'clusters: {us: {bootstrap_servers: "a:1"}, eu: {bootstrap_servers: "b:1"}}\n'
    (flow,) = load_config(clusters + text).flows
    assert flow.audit.identity.value is False
    assert flow.audit.identity.headers is True
    assert flow.audit.identity.ignored_headers == ("trace",)


def test_a_rare_difference_is_said_and_not_left_out() -> None:
    text = told(MASKED)
    assert "the timestamp differs in 3 of 1,000 records: too rare" in " ".join(text.split())
    assert "timestamp: false" not in text
    assert "2 copies without a recognisable original" in text


def test_equal_copies_need_no_change() -> None:
    assert told(PLAIN).endswith("copies equal their originals: leave the identity as it is\n")


def test_what_could_not_be_compared_is_named() -> None:
    missing = NotAudited("us.gone", NotAuditedReason.TARGET_MISSING, "there is no us.gone on eu")
    text = told(EMPTY, missing=(missing,))
    assert "us->eu clicks: no record could be compared" in text
    assert "us.gone: target_missing: there is no us.gone on eu" in text
