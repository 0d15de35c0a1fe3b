"""What a digest says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from digests import NOW, at, detail, entry, report, texts, window
from slack_receiver import check

from mm2slo_core.objectives.status import Reason, Status
from mm2slo_core.reporting.entry import Confirmation, Incident
from mm2slo_core.sli import Sli
from mm2slo_core.topology import Flow
from mm2slo_report.digest.links import Links
from mm2slo_report.digest.message import FLOWS, Message, digest

US_EU, EU_US, AP_EU = Flow("us", "eu"), Flow("eu", "us"), Flow("ap", "eu")
LINKS = Links("https://slo.example/")
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
    status=Status.WARNING,
    reason=Reason.BURNING,
    exhaustion=18_720.0,
    confirmation=AUDITED,
)
FINE = entry(EU_US, before=1.0, confirmation=FOUND)
SILENT = entry(AP_EU, good=0, errors=("Prometheus answers <nothing>",))


def said(message: Message) -> str:
    check({"text": message.text, "blocks": list(message.blocks)})
    return "\n".join(texts(message.blocks))


@pytest.fixture(scope="module")
def whole() -> str:
    outage = Incident(
        start=at(2026, 7, 14, 8, 2), end=at(2026, 7, 14, 8, 31), bad=36.0, consumed=3.6
    )
    same = Incident(start=at(2026, 7, 14, 8, 3), end=at(2026, 7, 14, 8, 33), bad=40.0, consumed=0.4)
    other = Incident(start=at(2026, 7, 16, 22), end=at(2026, 7, 16, 22, 2), bad=2.0, consumed=0.02)
    made = report([FINE, LATE, BREACHED, SILENT], warnings=("retention is 15d",))
    return said(digest(made, [detail(BREACHED, outage), detail(LATE, same, other)], LINKS))


def test_the_title_says_what_was_kept() -> None:
    blocks = digest(report([FINE, LATE, BREACHED, SILENT]), [], LINKS).blocks
    assert blocks[0] == {
        "type": "header",
        "text": {
            "type": "plain_text",
            "emoji": False,
            "text": "Replication SLOs, 7d to 2026-07-20 09:00 CEST: 2 of 4 met, 1 missed, "
            "1 unknown, and audits found faults",
        },
    }


def test_states_are_counted_apart_and_trends_told(whole: str) -> None:
    assert (
        ":red_circle: 1 breached   :large_orange_circle: 1 warning   "
        ":grey_question: 1 no data   :large_green_circle: 1 ok"
    ) in whole
    assert "Against the period before: 1 better, 1 worse, 1 as before, 1 not to compare" in whole


def test_a_period_before_that_is_hardly_known_is_no_better_nor_worse() -> None:
    assert LATE.before is not None
    dark = replace(LATE, before=replace(LATE.before, coverage=0.25))
    text = said(digest(report([dark, FINE]), [], LINKS))
    assert "Against the period before: 1 as before, 1 not to compare" in text
    assert "budget 50 % (was 25 %, 25 % of it known)" in text


def test_flows_come_worst_first_with_their_budgets(whole: str) -> None:
    lines = whole.split("\n")
    start = lines.index(":red_circle: `us-&gt;eu` *breached*")
    assert lines[start : start + 7] == [
        ":red_circle: `us-&gt;eu` *breached*",
        "`░░░░░░░░░░` availability 99.62 %, promised 99.9 %; budget -280 % (▼ was 61.2 %)",
        (
            "`█████░░░░░` latency `10s` 99.5 %, promised 99 %; budget 50 % (▲ was 25 %); "
            "a pair of windows burns too fast; used up in 5.2 h at the pace of the last hour"
        ),
        ":grey_question: `ap-&gt;eu` *no data*",
        "`··········` availability n/a, promised 99.9 %; nothing was measured",
        ":large_green_circle: `eu-&gt;us` *ok*",
        "`██████████` availability 100 %, promised 99.9 %; budget 100 % (as before)",
    ]


def test_an_outage_that_hurt_two_objectives_is_told_once(whole: str) -> None:
    lines = whole.split("\n")
    start = lines.index("*What cost most*")
    assert lines[start + 1 : start + 4] == [
        (
            "• `us-&gt;eu` 2026-07-14 10:02 to 10:31 CEST (29 min): 36 bad, 360 % of the budget of "
            "availability"
        ),
        (
            "• `us-&gt;eu` 2026-07-17 00:00 to 00:02 CEST (2 min): 2 bad, 2 % of the budget of "
            "latency `10s`"
        ),
        "*Audits of the records*",
    ]


def test_audits_are_told_by_flow_those_with_faults_first(whole: str) -> None:
    lines = whole.split("\n")
    start = lines.index("*Audits of the records*")
    assert lines[start + 1 : start + 4] == [
        "• `eu-&gt;us` *audited: 2 lost of 9*",
        "• `us-&gt;eu` audited up to 2026-07-20 07:00 UTC: 0 lost of 1,000, loss below 0.3 %",
        "1 flow not audited in this time",
    ]


def test_warnings_errors_and_the_link_are_there(whole: str) -> None:
    assert "retention is 15d" in whole
    assert "Prometheus answers &lt;nothing&gt;" in whole
    assert f"<{URL}|Full report>" in whole
    assert "Counted by recorder, as of 2026-07-20 09:00 CEST." in whole


def test_the_text_says_the_title_the_worst_and_the_link() -> None:
    assert digest(report([FINE, BREACHED]), [], LINKS).text == (
        "Replication SLOs, 7d to 2026-07-20 09:00 CEST: 1 of 2 met, 1 missed, and audits found "
        f"faults. Worst: `us-&gt;eu` availability, budget -280 %. <{URL}|Full report>"
    )


def test_without_a_service_there_is_no_link() -> None:
    message = digest(report([BREACHED]), [], Links())
    assert "Full report" not in said(message) + message.text


def test_a_report_without_objectives_says_so() -> None:
    assert "Replication SLOs, 7d to 2026-07-20 09:00 CEST: no objectives" in said(
        digest(report([]), [], LINKS)
    )


def test_a_finished_month_is_linked_without_an_instant_a_running_one_with_it() -> None:
    over = digest(report([FINE], over=window("2026-06")), [], LINKS)
    assert "<https://slo.example/slo/report?format=html&period=2026-06|" in said(over)
    running = digest(report([FINE], over=window("2026-07")), [], LINKS)
    assert "2026-07 so far, to 2026-07-20 09:00 CEST" in said(running)
    assert "at=2026-07-20T07%3A00%3A00Z&period=2026-07|" in said(running)


def test_flows_that_are_left_out_are_counted_by_how_they_stand() -> None:
    flows = [Flow(f"site{number:02}", "eu") for number in range(100)]
    entries = [entry(flow, good=9_980, bad=20) for flow in flows[:10]]
    entries += [entry(flow) for flow in flows[10:]]
    told = said(digest(report(entries), [], LINKS))
    assert told.count("*breached*") == FLOWS
    assert (
        f"and 92 more flows: :red_circle: 2 breached   :large_green_circle: 90 ok "
        f"(<{URL}|all of them>)"
    ) in told


def test_objectives_that_are_left_out_are_counted_by_how_they_stand() -> None:
    entries = [entry(US_EU, Sli.LATENCY, tier=f"{number}s") for number in range(10)]
    assert "and 6 more: :large_green_circle: 6 ok" in said(digest(report(entries), [], LINKS))


def test_what_is_not_known_is_said() -> None:
    told = said(digest(report([entry(US_EU, coverage=0.6, since=NOW - 1)]), [], LINKS))
    assert "budget 100 %; 60 % known" in told
    assert "1 of 1 objectives are younger than their period" in told
