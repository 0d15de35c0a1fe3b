"""Digests stay within Slack's limits, whatever their names and number of flows."""

import json

from digest_samples import NOW, detail, entry, report, texts
from fake_slack import TOTAL, check_message, find_unescaped, utf16_length
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.sli_counters import Sli
from mm2slo_core.objectives.error_budget import Reason, Status
from mm2slo_core.reporting.report_entry import Confirmation, Incident
from mm2slo_core.topology import Flow
from mm2slo_report.digest.digest_message import (
    MAX_FLOWS,
    Message,
    build_message,
    format_for_terminal,
)
from mm2slo_report.service_settings import ReportLinks

NASTY = '&<>`*_~|"\\\n\u202e🙂 :@!#/ab'
NAMES = st.text(alphabet=NASTY, max_size=300) | st.text(max_size=40)
LINKS = ReportLinks("https://slo.example")


@st.composite
def messages(draw: st.DrawFn) -> Message:
    names = draw(st.lists(NAMES, min_size=1, max_size=6))
    count = draw(st.sampled_from([0, 1, 3, 12, 60]))
    sentence, tier, problem = draw(NAMES), draw(NAMES), draw(NAMES)
    audited = Confirmation(audited_up_to=None, faults={"lost": 1}, sentence=sentence)
    entries = [
        entry(
            Flow(f"{names[number % len(names)]}{number}", names[0]),
            sli,
            tier=tier,
            good=draw(st.sampled_from([0.0, 1.0, 1e12])),
            bad=draw(st.sampled_from([0.0, 0.3, 7.0])),
            before=draw(st.sampled_from([None, -3.0, 0.5])),
            status=draw(st.sampled_from(Status)),
            exhaustion=1.0,
            coverage=0.5,
            confirmation=audited,
            errors=(f"{problem}{number}",),
        )
        for number in range(count)
        for sli in (Sli.AVAILABILITY, Sli.LATENCY)
    ]
    cost = Incident(start=NOW - 60_000, end=NOW, bad=0.01, consumed=1e-9, equivalent_minutes=1.0)
    return build_message(
        report(entries, warnings=(problem,) * 20), [detail(each, cost) for each in entries], LINKS
    )


@given(messages())
def test_message_any_report_is_accepted_by_slack(message: Message) -> None:
    check_message({"text": message.text, "blocks": list(message.blocks)})
    assert utf16_length(json.dumps(list(message.blocks), ensure_ascii=False)) <= TOTAL
    assert all(find_unescaped(each) is None for each in texts(message.blocks))
    assert all(
        len(line) <= 80
        for line in format_for_terminal(message).splitlines()
        if "https://" not in line
    )


def test_message_hundred_flows_with_long_names_shows_the_worst() -> None:
    flows = [Flow("&" * 250 + f"{number}", "<" * 250) for number in range(100)]
    entries = [
        entry(flow, sli, tier="<" * 100, good=0, bad=1, before=-1.0)
        for flow in flows
        for sli in (Sli.AVAILABILITY, Sli.LATENCY, Sli.COMPLETENESS, Sli.ORDER)
    ]
    message = build_message(report(entries), [], LINKS)
    check_message({"text": message.text, "blocks": list(message.blocks)})
    assert "*breached*" in "\n".join(texts(message.blocks))


def test_message_too_long_omits_flows_and_counts_them() -> None:
    audited = Confirmation(audited_up_to=None, faults={"lost": 1}, sentence='"' * 400)
    entries = [
        entry(
            Flow(f"{number}{chr(34) * 200}", "eu"),
            Sli.LATENCY,
            tier=f"{tier}{chr(34) * 100}",
            bad=1,
            before=0.5,
            status=Status.AT_RISK,
            reason=Reason.BURNING,
            exhaustion=18_720.0,
            coverage=0.123456,
            confirmation=audited,
            errors=(f"{number}{chr(34) * 400}",),
        )
        for number in range(20)
        for tier in range(6)
    ]
    message = build_message(report(entries), [], LINKS)
    check_message({"text": message.text, "blocks": list(message.blocks)})
    text = "\n".join(texts(message.blocks))
    shown = text.count("*at risk*")
    assert 1 <= shown < MAX_FLOWS
    assert f"and {20 - shown} more flows: :large_orange_circle: {20 - shown} at risk" in text


def test_message_markup_in_names_is_escaped() -> None:
    flow = Flow("<!channel>", "*`<https://evil.example|eu>`*")
    message = build_message(
        report([entry(flow, errors=("<@U123> *bold* :tada:",))], warnings=("<!here>",)), [], LINKS
    )
    joined = "\n".join(texts(message.blocks)) + message.text
    for sign in ("<!", "<@", "<https://evil"):
        assert sign not in joined
    assert "`&lt;!channel&gt;-&gt;*ˋ&lt;https://evil.example|eu&gt;ˋ*`" in joined  # noqa: RUF001 - see format_code()
    [sentences] = [each for each in message.blocks if "<!here>" in str(each) or "tada" in str(each)]
    assert {each["type"] for each in sentences["elements"]} == {"plain_text"}
    assert {each["emoji"] for each in sentences["elements"]} == {False}
