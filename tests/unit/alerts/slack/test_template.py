"""The Slack template, rendered by amtool: content and length of messages."""

import itertools
import json
import re
import shlex
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest
from fake_slack import check_message
from promtool import needs_promtool

from mm2slo_alerts.message_preview import message_parts, parse_message
from mm2slo_alerts.slack_template import MESSAGE_LIMITS, message_template
from mm2slo_core.config.alerting_config import AlertingConfig, LinksConfig

pytestmark = needs_promtool
# Slack folds a text of this length, or with so many line breaks.
FOLDED, FOLDED_BREAKS = 700, 5
SINCE = datetime(2026, 2, 27, 22, 58, 30, tzinfo=UTC)
CONFIG = AlertingConfig(
    links=LinksConfig(runbook="https://r.example", alertmanager="https://am.example")
)
EVERY_LINK = LinksConfig(
    runbook="https://r", dashboard="https://d", report="https://s", splunk="https://l"
)
FUNCTIONS_OF_0_25 = {
    *("toUpper", "toLower", "title", "join", "match", "safeHtml", "reReplaceAll", "stringSlice"),
    *("and", "or", "not", "len", "index", "slice", "printf", "print", "println", "urlquery"),
    *("eq", "ne", "lt", "le", "gt", "ge"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("template")
    (found / "mm2slo.tmpl").write_text(message_template(CONFIG), encoding="utf-8")
    return found


def executed(folder: Path, text: str, data: dict[str, Any]) -> str:
    (folder / "data.json").write_text(json.dumps(data), encoding="utf-8")
    done = subprocess.run(
        [
            "amtool",
            "template",
            "render",
            "--template.glob=mm2slo.tmpl",
            "--template.data=data.json",
            f"--template.text={text}",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


_numbers = itertools.count()


def alert(
    labels: dict[str, str], notes: dict[str, str], lasted: timedelta | None = None
) -> dict[str, Any]:
    return {
        "status": "firing" if lasted is None else "resolved",
        "labels": {"alertname": "MM2Some", "severity": "page", **labels},
        "annotations": notes,
        "startsAt": SINCE.isoformat(),
        "endsAt": "0001-01-01T00:00:00Z" if lasted is None else (SINCE + lasted).isoformat(),
        "generatorURL": "",
        "fingerprint": str(next(_numbers)),
    }


def data(*alerts: dict[str, Any], common: dict[str, str] | None = None) -> dict[str, Any]:
    firing = any(each["status"] == "firing" for each in alerts)
    return {
        "receiver": "r",
        "status": "firing" if firing else "resolved",
        "alerts": list(alerts),
        "groupLabels": {"alertname": "MM2Some"},
        "commonLabels": alerts[0]["labels"],
        "commonAnnotations": alerts[0]["annotations"] if common is None else common,
        "externalURL": "http://am.example:9093",
    }


def message(folder: Path, *alerts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the attachment after the fake Slack server has accepted it."""
    text, settings = message_parts(CONFIG)
    found = parse_message(executed(folder, text, data(*alerts, **more)), settings)
    check_message(found)
    [attachment] = found["attachments"]
    return dict(attachment)


def test_template_uses_only_functions_of_alertmanager_0_25() -> None:
    actions = re.findall(
        r"\{\{-?(.*?)-?\}\}", message_template(AlertingConfig(links=EVERY_LINK)), re.DOTALL
    )
    names = {
        name
        for action in actions
        if not action.strip().startswith("/*")
        for name in re.findall(r"(?<![.$\w])[a-z]\w+", re.sub(r'"(?:[^"\\]|\\.)*"', "", action))
    }
    keywords = {"define", "template", "if", "else", "end", "range", "with"}
    assert names - keywords <= FUNCTIONS_OF_0_25


@pytest.mark.parametrize(
    ("lasted", "text"),
    [
        (timedelta(seconds=59), "59s, 27 Feb 22:58 to 22:59 UTC"),
        (timedelta(seconds=60), "1m 0s, 27 Feb 22:58 to 22:59 UTC"),
        (timedelta(seconds=119), "1m 59s, 27 Feb 22:58 to 23:00 UTC"),
        (timedelta(minutes=2), "2m 0s, 27 Feb 22:58 to 23:00 UTC"),
        (timedelta(minutes=59, seconds=59), "1 h 0 min, 27 Feb 22:58 to 23:58 UTC"),
        (timedelta(hours=1), "1 h 0 min, 27 Feb 22:58 to 23:58 UTC"),
        (timedelta(hours=23, minutes=59), "23 h 59 min, 27 Feb 22:58 to 28 Feb 22:57 UTC"),
        (timedelta(hours=24), "1 day 0 h, 27 Feb 22:58 to 28 Feb 22:58 UTC"),
        (timedelta(days=2, hours=5), "2 days 5 h, 27 Feb 22:58 to 2 Mar 03:58 UTC"),
        (timedelta(days=59, hours=23), "59 days 23 h, 27 Feb 22:58 to 28 Apr 21:58 UTC"),
        (timedelta(days=400), "more than 60 days, 27 Feb 22:58 to 3 Apr 22:58 UTC"),
    ],
)
def test_duration_of_resolved_alert_is_readable(folder: Path, lasted: timedelta, text: str) -> None:
    ended = alert({}, {"summary": "s"}, lasted)
    shown = executed(folder, '{{ template "mm2slo.slack.text" . }}', data(ended))
    assert shown.strip() == f"*Lasted* {text}"


def test_objective_alert_title_has_flow_and_indicator(folder: Path) -> None:
    labels = {"flow": "us->eu", "sli": "data_freshness", "tier": "default", "owner": "a & b"}
    notes = {"summary": "us->eu: it burns", "impact": "Old.", "action": "Go."}
    found = message(folder, alert(labels, notes))
    assert found["title"] == "🔥 FIRING page · us-&gt;eu · data freshness"
    assert found["text"] == (
        "it burns\nOld.\n*Since* 27 Feb 22:58 UTC · *Owner* a &amp; b\n*Action* Go."
    )
    assert found["fallback"] == f"{found['title']}: it burns"


def test_other_alert_title_is_its_summary(folder: Path) -> None:
    found = message(folder, alert({"flow": "us->eu", "severity": "ticket"}, {"summary": "A & B."}))
    assert found["title"] == found["fallback"] == "⚠️ FIRING ticket · A &amp; B."
    assert found["text"] == "*Since* 27 Feb 22:58 UTC"


def test_alert_without_annotations_title_is_its_name(folder: Path) -> None:
    found = message(folder, alert({"severity": ""}, {}))
    assert found["title"] == "⚠️ FIRING ticket · MM2Some"
    assert found["actions"][0] == {"type": "button", "text": "Runbook", "url": "https://r.example"}


def test_message_lists_five_alerts_and_counts_others(folder: Path) -> None:
    many = [alert({}, {"summary": f"Topic {number}."}) for number in range(9)]
    over = [alert({}, {"summary": f"Past {number}."}, timedelta(hours=1)) for number in range(2)]
    found = message(folder, *many, *over, common={})
    assert found["title"].endswith("Topic 0. (and 8 more)")
    assert found["text"].split("\n") == [
        "*Since* 27 Feb 22:58 UTC · 2 resolved",
        *(f"• Topic {number}." for number in range(1, 6)),
        "and 3 more",
    ]


@pytest.mark.parametrize("reverse", [False, True])
def test_message_leads_with_cause_and_lists_others(folder: Path, reverse: bool) -> None:
    burn = {"alertname": "MM2ErrorBudgetBurn", "flow": "us->eu", "sli": "latency", "tier": "60s"}
    group = [
        alert(burn, {"summary": "us->eu: latency burns"}),
        alert({"alertname": "MM2ConnectorFailed"}, {"summary": "Connector failed."}),
        alert(
            {"alertname": "MM2FlowStopped"},
            {"summary": "Flow stopped.", "runbook_url": "https://stop"},
        ),
        alert({"alertname": "MM2TaskFailed"}, {"summary": "Task failed."}),
    ]
    found = message(folder, *(reversed(group) if reverse else group), common={})
    assert found["title"] == "🔥 FIRING page · Flow stopped. (and 3 more)"
    assert set(found["text"].split("\n")[1:]) == {
        "• us-&gt;eu: latency burns",
        "• Connector failed.",
        "• Task failed.",
    }
    assert found["actions"][0]["url"] == "https://stop"
    without_stop = message(folder, *group[:2], common={})
    assert without_stop["title"] == "🔥 FIRING page · Connector failed. (and 1 more)"


def test_alerts_with_same_summary_are_one_message(folder: Path) -> None:
    roles = [alert({role: "us"}, {"summary": "us is down."}) for role in ("source", "target")]
    found = message(folder, *roles)
    assert found["title"] == "🔥 FIRING page · us is down."
    assert "•" not in found["text"]


@pytest.mark.parametrize(
    ("labels", "lasted", "color"),
    [
        ({}, None, "#c62828"),
        ({"severity": "ticket"}, None, "#f9a825"),
        ({"alertname": "MM2FlowMetricsAbsent"}, None, "#757575"),
        ({"alertname": "MM2SLOCoverageLow", "severity": "ticket"}, None, "#757575"),
        ({}, timedelta(hours=1), "#2e7d32"),
    ],
)
def test_colour_depends_on_severity_and_state(
    folder: Path, labels: dict[str, str], lasted: timedelta | None, color: str
) -> None:
    assert message(folder, alert(labels, {"summary": "s"}, lasted))["color"] == color


LONG = {
    "plain": "text " * 800,
    "escaped": "&" * 4_000,
    "wide": "漢" * 4_000,
    "lines": "a\nb\r\n" * 1_000,
    "code": "`" * 4_000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
@pytest.mark.parametrize("sli", ["", "latency"])
@pytest.mark.parametrize("lasted", [None, timedelta(days=3)], ids=["firing", "resolved"])
def test_message_about_one_alert_is_never_folded(
    folder: Path, text: str, sli: str, lasted: timedelta | None
) -> None:
    labels = {"flow": text[:200], "owner": text, "topic": text, **({"sli": sli} if sli else {})}
    notes = dict.fromkeys(("summary", "impact", "action", "description"), text)
    found = message(folder, alert(labels, notes, lasted))
    seen = unescaped(found["text"])
    assert len(seen) < FOLDED
    assert seen.count("\n") < FOLDED_BREAKS
    assert len(unescaped(found["title"])) <= MESSAGE_LIMITS.summary + 30
    assert "…" in (found["title"] + seen)
    assert not re.search(r"[<>`]|&(?!(amp|lt|gt);)", found["text"] + found["title"])


def test_longest_list_has_bounded_length(folder: Path) -> None:
    notes = dict.fromkeys(("impact", "action"), LONG["plain"])
    many = [alert({}, {"summary": f"{n} {LONG['plain']}", **notes}) for n in range(40)]
    found = message(folder, *many, common={})
    assert len(found["text"]) < 2 * FOLDED
    assert found["text"].count("\n") == 2 + MESSAGE_LIMITS.alerts + 1


def test_footer_without_room_for_command_is_empty(folder: Path) -> None:
    fits = data(alert({}, {})) | {
        "commonLabels": {"alertname": "A", "flow": "a->b", "topic": "t", "owner": "o"}
    }
    text = '{{ template "mm2slo.slack.footer" . }}'
    assert executed(folder, text, fits).strip() == (
        "amtool silence add --alertmanager.url=http://am.example:9093 -d 2h -c known "
        "'alertname=\"A\"' 'flow=\"a-&gt;b\"' 'topic=\"t\"'"
    )
    for flow in ("x" * 300, "new\nline", "`code`"):
        assert executed(folder, text, fits | {"commonLabels": {"flow": flow}}).strip() == ""


def test_silence_of_several_alerts_matches_their_names_and_severity(folder: Path) -> None:
    shared = {"flow": "a->b", "namespace": "kafka", "severity": "warning"}
    names = ("MM2TaskFailed", "MM2Task", "MM2TaskFailed", "Own (1)'s")
    several = data(*(alert({**shared, "alertname": name}, {}) for name in names))
    several["commonLabels"] = shared
    footer = executed(folder, '{{ template "mm2slo.slack.footer" . }}', several)
    matchers = [
        'alertname=~"MM2TaskFailed|MM2Task|Own \\\\(1\\\\)\'s"',
        *(f'{name}="{value}"' for name, value in shared.items()),
    ]
    assert shlex.split(unescaped(footer))[-4:] == matchers
    link = executed(folder, '{{ template "mm2slo.silence.filter" . }}', several)
    assert unquote_plus(link.strip()) == f"{{{','.join(matchers)}}}"


def test_limits_add_up() -> None:
    """The longest parts of one alert and the text around them stay below Slack's folding."""
    labels = len("*Action* ") + len("*Since* 27 Feb 22:58 UTC · *Owner* ")
    labels += len(" · 99 resolved") + FOLDED_BREAKS - 1
    shared = MESSAGE_LIMITS.impact + MESSAGE_LIMITS.owner + labels
    assert shared + MESSAGE_LIMITS.summary + MESSAGE_LIMITS.short_action < FOLDED
    assert shared + MESSAGE_LIMITS.action < FOLDED


def unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
