"""Digests as text for a terminal."""

from digest_samples import entry, report

from mm2slo_core.indicators.sli_counters import Sli
from mm2slo_core.topology import Flow
from mm2slo_report.digest.digest_message import build_message, format_for_terminal
from mm2slo_report.service_settings import ReportLinks


def test_format_for_terminal_wraps_at_80_columns() -> None:
    flow = Flow("us", "eu")
    entries = [
        entry(flow, good=9_962, bad=38, before=0.612),
        entry(flow, Sli.LATENCY, tier="10s", target=0.99, good=9_950, bad=50, before=0.25),
    ]
    message = build_message(
        report(entries, warnings=("a *bold* <warning>",)), [], ReportLinks("https://s.example")
    )
    assert format_for_terminal(message).splitlines() == [
        "Replication SLOs, 7d to 2026-07-20 09:00 CEST: 1 of 2 met, 1 breached",
        "",
        "!! 1 breached   ok 1 met",
        "Compared with the previous period: 1 better, 1 worse",
        "",
        "-" * 80,
        "!! us->eu breached",
        "░░░░░░░░░░ availability 99.62 %, objective 99.9 %; budget -280 % (▼ was 61.2 %)",
        "█████░░░░░ latency 10s 99.5 %, objective 99 %; budget 50 % (▲ was 25 %)",
        "",
        "Record audits",
        "1 flow not audited in this period",
        "",
        "a *bold* <warning>",
        "Full report:",
        "  https://s.example/slo/report?format=html&at=2026-07-20T07%3A00%3A00Z&period=7d",
        "",
        "Bars show the remaining error budget. Source: recorder, as of 2026-07-20 09:00",
        "  CEST.",
    ]


def test_format_for_terminal_keeps_markup_in_names() -> None:
    message = build_message(report([entry(Flow("*a*", ":red_circle:"))]), [], ReportLinks())
    assert "ok *a*->:red_circle: met" in format_for_terminal(message).splitlines()


def test_format_for_terminal_keeps_numbers_and_percent_signs_together() -> None:
    message = build_message(
        report([entry(Flow("us", "eu"), good=603_060, bad=1_740, before=0.612)]), [], ReportLinks()
    )
    lines = format_for_terminal(message).splitlines()
    at = lines.index("░░░░░░░░░░ availability 99.712 %, objective 99.9 %; budget -187.7 % (▼ was")
    assert lines[at + 1] == "  61.2 %)"
