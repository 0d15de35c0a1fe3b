"""The content of a digest."""

from dataclasses import replace

import pytest
from digest_samples import NOW, at, detail, entry, report, texts, window
from fake_slack import check_message

from mm2slo_core.indicators.sli_counters import Sli
from mm2slo_core.objectives.error_budget import Reason, Status
from mm2slo_core.reporting.report_entry import Confirmation, Incident
from mm2slo_core.topology import Flow
from mm2slo_report.digest.digest_message import MAX_FLOWS, Message, build_message
from mm2slo_report.service_settings import ReportLinks

US_EU, EU_US, AP_EU = Flow("us", "eu"), Flow("eu", "us"), Flow("ap", "eu")
LINKS = ReportLinks("https://slo.example/")
URL = "https://slo.example/slo/report?format=html&at=2026-07-20T07%3A00%3A00Z&period=7d"
AUDITED = Confirmation(
    audited_up_to=NOW,
    records=1_000,
    faults={},
    loss_below=0.003,
    sentence="audited up to 2026-07-20 07:00 UTC: 0 lost of 1,000, loss below 0.3 %",
)
FOUND = Confirmation(
    audited_up_to=NOW, records=9, faults={"lost": 2}, sentence="audited: 2 lost of 9"
)

BREACHED = entry(US_EU, good=9_962, bad=38, before=0.612, confirmation=AUDITED)
LATE = entry(
    US_EU,
    Sli.LATENCY,
    tier="10s",
    target=0.99,
    good=9_950,
    bad=50,
    before=0.25,
    status=Status.AT_RISK,
    reason=Reason.BURNING,
    exhaustion=18_720.0,
    confirmation=AUDITED,
)
FINE = entry(EU_US, before=1.0, confirmation=FOUND)
SILENT = entry(AP_EU, good=0, errors=("Prometheus answers <nothing>",))


def message_text(message: Message) -> str:
    check_message({"text": message.text, "blocks": list(message.blocks)})
    return "\n".join(texts(message.blocks))


def incident(start: int, end: int, bad: float, consumed: float) -> Incident:
    return Incident(
        start=start, end=end, bad=bad, consumed=consumed, equivalent_minutes=40 * consumed
    )


@pytest.fixture(scope="module")
def whole() -> str:
    outage = Incident(
        start=at(2026, 7, 14, 8, 2),
        end=at(2026, 7, 14, 8, 31),
        bad=36.0,
        consumed=3.6,
        equivalent_minutes=1.0,
    )
    same = Incident(
        start=at(2026, 7, 14, 8, 3),
        end=at(2026, 7, 14, 8, 33),
        bad=40.0,
        consumed=0.4,
        equivalent_minutes=1.0,
    )
    other = Incident(
        start=at(2026, 7, 16, 22),
        end=at(2026, 7, 16, 22, 2),
        bad=2.0,
        consumed=0.02,
        equivalent_minutes=1.0,
    )
    made = report([FINE, LATE, BREACHED, SILENT], warnings=("retention is 15d",))
    return message_text(
        build_message(made, [detail(BREACHED, outage), detail(LATE, same, other)], LINKS)
    )


def test_title_counts_objectives_met() -> None:
    blocks = build_message(report([FINE, LATE, BREACHED, SILENT]), [], LINKS).blocks
    assert blocks[0] == {
        "type": "header",
        "text": {
            "type": "plain_text",
            "emoji": False,
            "text": "Replication SLOs, 7d to 2026-07-20 09:00 CEST: 1 of 4 met, 1 breached, "
            "1 at risk, 1 no data, and audits found faults",
        },
    }


def test_summary_counts_statuses_and_trends(whole: str) -> None:
    assert (
        ":red_circle: 1 breached   :large_orange_circle: 1 at risk   "
        ":grey_question: 1 no data   :large_green_circle: 1 met"
    ) in whole
    assert (
        "Compared with the previous period: 1 better, 1 worse, 1 unchanged, 1 not comparable"
        in whole
    )


def test_summary_low_coverage_of_previous_period_is_not_comparable() -> None:
    assert LATE.before is not None
    dark = replace(LATE, before=replace(LATE.before, coverage=0.25))
    text = message_text(build_message(report([dark, FINE]), [], LINKS))
    assert "Compared with the previous period: 1 unchanged, 1 not comparable" in text
    assert "budget 50 % (was 25 % at 25 % coverage)" in text


def test_flow_sections_are_ordered_worst_first(whole: str) -> None:
    lines = whole.split("\n")
    start = lines.index(":red_circle: `us-&gt;eu` *breached*")
    assert lines[start : start + 7] == [
        ":red_circle: `us-&gt;eu` *breached*",
        "`░░░░░░░░░░` availability 99.62 %, objective 99.9 %; budget -280 % (▼ was 61.2 %)",
        (
            "`█████░░░░░` latency `10s` 99.5 %, objective 99 %; budget 50 % (▲ was 25 %); "
            "burn rate above the threshold in both windows of a pair; "
            "exhausted in about 5.2 h at this rate"
        ),
        ":grey_question: `ap-&gt;eu` *no data*",
        "`··········` availability n/a, objective 99.9 %; no samples",
        ":large_green_circle: `eu-&gt;us` *met*",
        "`██████████` availability 100 %, objective 99.9 %; budget 100 % (unchanged)",
    ]


def test_incidents_outage_of_two_objectives_is_listed_once(whole: str) -> None:
    lines = whole.split("\n")
    start = lines.index("*Costliest incidents*")
    assert lines[start + 1 : start + 4] == [
        (
            "• `us-&gt;eu` 2026-07-14 10:02 to 10:31 CEST (29 min): 36 bad, 360 % of the error "
            "budget of "
            "availability"
        ),
        (
            "• `us-&gt;eu` 2026-07-17 00:00 to 00:02 CEST (2 min): 2 bad, 2 % of the error "
            "budget of "
            "latency `10s`"
        ),
        "*Record audits*",
    ]


def test_audits_list_flows_with_faults_first(whole: str) -> None:
    lines = whole.split("\n")
    start = lines.index("*Record audits*")
    assert lines[start + 1 : start + 4] == [
        "• `eu-&gt;us` *audited: 2 lost of 9*",
        "• `us-&gt;eu` audited up to 2026-07-20 07:00 UTC: 0 lost of 1,000, loss below 0.3 %",
        "1 flow not audited in this period",
    ]


def test_message_contains_warnings_errors_and_link(whole: str) -> None:
    assert "retention is 15d" in whole
    assert "Prometheus answers &lt;nothing&gt;" in whole
    assert f"<{URL}|Full report>" in whole
    assert "Source: recorder, as of 2026-07-20 09:00 CEST." in whole


def test_fallback_text_contains_title_worst_objective_and_link() -> None:
    assert build_message(report([FINE, BREACHED]), [], LINKS).text == (
        "Replication SLOs, 7d to 2026-07-20 09:00 CEST: 1 of 2 met, 1 breached, and audits found "
        f"faults. Worst: `us-&gt;eu` availability, budget -280 %. <{URL}|Full report>"
    )


def test_message_without_report_url_has_no_link() -> None:
    message = build_message(report([BREACHED]), [], ReportLinks())
    assert "Full report" not in message_text(message) + message.text


def test_title_without_objectives_says_no_objectives() -> None:
    assert "Replication SLOs, 7d to 2026-07-20 09:00 CEST: no objectives" in message_text(
        build_message(report([]), [], LINKS)
    )


def test_link_contains_the_instant_only_for_a_running_period() -> None:
    over = build_message(report([FINE], over=window("2026-06")), [], LINKS)
    assert "<https://slo.example/slo/report?format=html&period=2026-06|" in message_text(over)
    running = build_message(report([FINE], over=window("2026-07")), [], LINKS)
    assert "2026-07 so far, to 2026-07-20 09:00 CEST" in message_text(running)
    assert "at=2026-07-20T07%3A00%3A00Z&period=2026-07|" in message_text(running)


def test_omitted_flows_are_counted_by_status() -> None:
    flows = [Flow(f"site{number:02}", "eu") for number in range(100)]
    entries = [entry(flow, good=9_980, bad=20) for flow in flows[:10]]
    entries += [entry(flow) for flow in flows[10:]]
    text = message_text(build_message(report(entries), [], LINKS))
    assert text.count("*breached*") == MAX_FLOWS
    assert (
        f"and 92 more flows: :red_circle: 2 breached   :large_green_circle: 90 met "
        f"(<{URL}|show all>)"
    ) in text


def test_omitted_objectives_are_counted_by_status() -> None:
    entries = [entry(US_EU, Sli.LATENCY, tier=f"{number}s") for number in range(10)]
    assert "and 6 more: :large_green_circle: 6 met" in message_text(
        build_message(report(entries), [], LINKS)
    )


def test_low_coverage_and_partial_history_are_shown() -> None:
    text = message_text(
        build_message(report([entry(US_EU, coverage=0.6, since=NOW - 1)]), [], LINKS)
    )
    assert "budget 100 %; 60 % coverage" in text
    assert "1 of 1 objectives have data for only part of the period" in text


def test_period_before_the_first_data_has_no_data_for_part_of_it() -> None:
    later = entry(US_EU, good=0, since=NOW + 1)
    text = message_text(build_message(report([later, entry(US_EU)]), [], LINKS))
    assert "only part of the period" not in text
