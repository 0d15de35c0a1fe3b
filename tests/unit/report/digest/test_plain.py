"""A digest on a terminal."""

from __future__ import annotations

from digests import entry, report

from mm2slo_core.sli import Sli
from mm2slo_core.topology import Flow
from mm2slo_report.digest.links import Links
from mm2slo_report.digest.message import digest
from mm2slo_report.digest.plain import readable


def test_it_reads_as_on_slack_within_80_columns() -> None:
    flow = Flow("us", "eu")
    entries = [
        entry(flow, good=9_962, bad=38, before=0.612),
        entry(flow, Sli.LATENCY, tier="10s", target=0.99, good=9_950, bad=50, before=0.25),
    ]
    message = digest(
        report(entries, warnings=("a *bold* <warning>",)), [], Links("https://s.example")
    )
    assert readable(message).splitlines() == [
        "Replication SLOs, 7d to 2026-07-20 09:00 CEST: 1 of 2 met, 1 missed",
        "",
        "!! 1 breached   ok 1 ok",
        "Against the period before: 1 better, 1 worse",
        "",
        "-" * 80,
        "!! us->eu breached",
        "░░░░░░░░░░ availability 99.62 %, promised 99.9 %; budget -280 % (▼ was 61.2 %)",
        "█████░░░░░ latency 10s 99.5 %, promised 99 %; budget 50 % (▲ was 25 %)",
        "",
        "Audits of the records",
        "1 flow not audited in this time",
        "",
        "a *bold* <warning>",
        "Full report:",
        "  https://s.example/slo/report?format=html&at=2026-07-20T07%3A00%3A00Z&period=7d",
        "",
        "Bars show what is left of an error budget. Counted by recorder, as of 2026-07-20",
        "  09:00 CEST.",
    ]


def test_what_stands_in_a_name_is_no_markup() -> None:
    message = digest(report([entry(Flow("*a*", ":red_circle:"))]), [], Links())
    assert "ok *a*->:red_circle: ok" in readable(message).splitlines()


def test_a_figure_stays_with_its_sign() -> None:
    message = digest(
        report([entry(Flow("us", "eu"), good=603_060, bad=1_740, before=0.612)]), [], Links()
    )
    lines = readable(message).splitlines()
    at = lines.index("░░░░░░░░░░ availability 99.712 %, promised 99.9 %; budget -187.7 % (▼ was")
    assert lines[at + 1] == "  61.2 %)"
