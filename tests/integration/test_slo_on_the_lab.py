"""`/slo` during an outage, compared with canaries counted in the topics.

Two flows run for up to twenty minutes with one canary per second each, with `mm2slo exporter` and
`mm2slo report serve`. MirrorMaker 2 is killed for a step of five minutes. All values must equal the
count. An event close to a scrape may be before or after it; the count then is a range.
"""

import json
from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import pytest
from canary_log import Counts
from sample_report import check_csv, check_html, check_markdown
from slo_scenario import (
    DEADLINE,
    HEARTBEATS,
    OWN_TOPIC,
    PUBLISH_DELAY,
    SCRAPE,
    SCRAPE_DELAY,
    STEP,
    TIMED_SLIS,
    SloScenario,
    run_scenario,
    utc,
)

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("quiet-lab")]

WINDOW_MINUTES: Final = 28 * 24 * 60
ARRIVED: Final = ("uniqueness", "order", "affinity", "completeness")
INDICATORS: Final = [
    *(pytest.param(OWN_TOPIC, name, id=f"own-{name}") for name in (*TIMED_SLIS, *ARRIVED)),
    *(
        pytest.param(HEARTBEATS, name, id=f"shared-{name}")
        for name in (*TIMED_SLIS, "completeness")
    ),
]


@pytest.fixture(scope="module")
def scenario(
    lab_progress: Progress, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SloScenario]:
    with run_scenario(tmp_path_factory.mktemp("slo"), lab_progress) as run:
        yield run


def events_of(entry: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = entry["events"]
    return found


def slo(flow: Flow, name: str) -> str:
    return f"{flow.slug}-{name}"


def entry_of(document: dict[str, Any], flow: Flow, name: str) -> dict[str, Any]:
    (found,) = (each for each in document["entries"] if each["id"] == slo(flow, name))
    assert isinstance(found, dict)
    return found


def undated(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "alerts": [{**pair, "since": None} for pair in entry["alerts"]]}


def agrees(reported: dict[str, Any], truth: Counts) -> None:
    for name, wanted in truth._asdict().items():
        assert wanted.holds(reported[name]), (name, reported, truth)
    assert reported["good"] + reported["bad"] == reported["total"]
    assert reported["unknown"] == 0


@pytest.mark.parametrize(("flow", "name"), INDICATORS)
def test_history_per_step_equals_canary_log(scenario: SloScenario, flow: Flow, name: str) -> None:
    points = scenario.histories[slo(flow, name)]["points"]
    ends = range(scenario.known_since + STEP, scenario.end + 1, STEP)
    assert [each["end"] for each in points] == [utc(end) for end in ends]
    for point, end in zip(points, ends, strict=True):
        start = max(scenario.first_scrape, end - STEP - SCRAPE)
        agrees(point, scenario.truth(flow, name, start, end))
        assert point["samples"] == 5
    last = events_of(entry_of(scenario.lists[scenario.end], flow, name))
    for what in ("good", "bad", "total", "unknown"):
        assert sum(each[what] for each in points) == last[what]


@pytest.mark.parametrize(("flow", "name"), INDICATORS)
def test_report_at_each_instant_equals_canary_log(
    scenario: SloScenario, flow: Flow, name: str
) -> None:
    for instant in scenario.instants:
        entry = entry_of(scenario.lists[instant], flow, name)
        assert entry["as_of"] == utc(instant)
        agrees(events_of(entry), scenario.so_far(flow, name, instant))
        step = scenario.one_step_reports[instant, slo(flow, name)]["entry"]
        assert step["window"]["start"] == utc(instant - STEP)
        start = max(scenario.first_scrape, instant - STEP - SCRAPE)
        agrees(events_of(step), scenario.truth(flow, name, start, instant))


@pytest.mark.parametrize("flow", [OWN_TOPIC, HEARTBEATS], ids=str)
def test_outage_bad_events_equal_canary_log(scenario: SloScenario, flow: Flow) -> None:
    """The outage's edges are far from a scrape, so only events at a threshold are uncertain."""
    for name in TIMED_SLIS:
        before_kill, after_kill, end = (
            scenario.so_far(flow, name, each) for each in scenario.instants
        )
        assert before_kill.bad == (0, 0)
        assert after_kill.bad.least >= 15
        # MirrorMaker 2 restarts with one canary per second of outage; one may be at the threshold.
        assert end.bad.most - end.bad.least <= 1
        assert end.bad.least >= 50
    spent = [
        events_of(entry_of(scenario.lists[scenario.end], flow, name))["bad"] for name in TIMED_SLIS
    ]
    assert spent[1] > spent[0] == spent[2], "more are slower than 5 s than 10 s"


@pytest.mark.parametrize("flow", [OWN_TOPIC, HEARTBEATS], ids=str)
def test_pending_canaries_are_not_counted(scenario: SloScenario, flow: Flow) -> None:
    scraped = scenario.after_kill - SCRAPE
    due = [each for each in scenario.sent[flow] if scenario.first_scrape < each.due <= scraped]
    for name in TIMED_SLIS:
        reported = events_of(entry_of(scenario.lists[scenario.after_kill], flow, name))
        # One canary per second is pending until its deadline, within the publishing delays.
        assert len(due) - reported["total"] == pytest.approx(
            DEADLINE, abs=PUBLISH_DELAY + SCRAPE_DELAY
        )
    complete = events_of(entry_of(scenario.lists[scenario.after_kill], flow, "completeness"))
    available = events_of(entry_of(scenario.lists[scenario.after_kill], flow, "availability"))
    assert (complete["total"], complete["bad"]) == (available["good"], 0)
    assert len(due) - complete["total"] >= 30
    after = scenario.so_far(flow, "completeness", scenario.end)
    assert after.bad == (0, 0), "pending canaries arrived late and were not lost"
    assert after.good.least >= len(due) + STEP // 2


def test_duplicates_after_kill_are_counted(scenario: SloScenario) -> None:
    before_kill, _, end = (
        scenario.so_far(OWN_TOPIC, "uniqueness", each) for each in scenario.instants
    )
    assert before_kill.bad == (0, 0)
    assert end.bad.exact
    reported = events_of(entry_of(scenario.lists[scenario.end], OWN_TOPIC, "uniqueness"))
    complete = events_of(entry_of(scenario.lists[scenario.end], OWN_TOPIC, "completeness"))
    assert reported["bad"] == end.bad.least > 0
    assert reported["good"] == complete["good"]


@pytest.mark.parametrize(("flow", "name"), INDICATORS)
def test_budget_coverage_and_status_equal_values_from_counts(
    scenario: SloScenario, flow: Flow, name: str
) -> None:
    for instant in scenario.instants:
        entry = entry_of(scenario.lists[instant], flow, name)
        reported, budget, objective = events_of(entry), entry["budget"], entry["objective_ratio"]
        minutes = (instant - scenario.known_since) // 60
        # The budget is that of 28 days with events at the rate of the observed steps.
        allowed = reported["total"] * (1 - objective) * WINDOW_MINUTES / minutes
        assert budget["total_events"] == pytest.approx(allowed)
        assert budget["remaining_events"] == pytest.approx(allowed - reported["bad"])
        assert budget["consumed_ratio"] == pytest.approx(reported["bad"] / allowed)
        assert budget["remaining_ratio"] == pytest.approx(1 - reported["bad"] / allowed)
        assert budget["total_seconds"] == pytest.approx(WINDOW_MINUTES * 60 * (1 - objective))
        assert budget["remaining_seconds"] == pytest.approx(
            budget["remaining_ratio"] * budget["total_seconds"]
        )
        assert entry["sli_ratio"] == reported["good"] / reported["total"]
        assert entry["burn_rate"]["1h"] == pytest.approx(
            budget["consumed_ratio"] * WINDOW_MINUTES / 60
        )
        burning = any(each["state"] == "burning" for each in entry["alerts"])
        assert entry["status"] == ("at_risk" if burning else "met")
        assert entry["coverage"] == {
            "ratio": 1.0,
            "last_hour_ratio": 1.0,
            "samples": minutes,
            "expected_samples": minutes,
            "known_since": utc(scenario.known_since),
        }
        assert entry["errors"] == []


@pytest.mark.parametrize("flow", [OWN_TOPIC, HEARTBEATS], ids=str)
def test_incident_covers_outage(scenario: SloScenario, flow: Flow) -> None:
    detail = scenario.details[scenario.end, slo(flow, "availability")]
    (incident,) = detail["incidents"]
    assert incident["bad_events"] == events_of(detail["entry"])["bad"]
    points = scenario.histories[slo(flow, "availability")]["points"]
    bad = [each for each in points if each["bad"]]
    assert incident["start"] == bad[0]["start"] == utc(scenario.before_kill)
    assert incident["end"] == bad[-1]["end"]
    assert sum(each["bad_events"] for each in detail["days"]) == incident["bad_events"]


def test_query_with_past_time_equals_answer_at_that_time(scenario: SloScenario) -> None:
    assert list(scenario.live_lists) == list(scenario.instants)
    for instant, reported in scenario.live_lists.items():
        assert reported["as_of"] == utc(instant)
        assert scenario.lists[instant] == reported
    assert len(scenario.live_details) == len(scenario.instants) * len(scenario.objective_ids())
    for (instant, name), detail in scenario.live_details.items():
        assert scenario.details[instant, name] == detail
    for flow in (OWN_TOPIC, HEARTBEATS):
        before, end = (
            entry_of(scenario.lists[each], flow, "availability")
            for each in (scenario.before_kill, scenario.end)
        )
        assert (before["status"], before["budget"]["remaining_ratio"]) == ("met", 1)
        # Five minutes of outage in an hour exceeds the factor of the fast pair.
        assert (end["status"], end["status_pair"]) == ("at_risk", "fast")


def test_objective_detail_equals_list_entry(scenario: SloScenario) -> None:
    for instant, name in product(scenario.instants, scenario.objective_ids()):
        (listed,) = (each for each in scenario.lists[instant]["entries"] if each["id"] == name)
        # Lists have the start of burning for the worst alert only.
        assert undated(scenario.details[instant, name]["entry"]) == undated(listed)


def test_all_formats_have_same_values(scenario: SloScenario) -> None:
    for instant in scenario.instants:
        entries = json.loads(scenario.formats[instant, "json"][0])["entries"]
        assert entries == scenario.lists[instant]["entries"]
        assert len(entries) == len(scenario.objective_ids())
        for form, check in (("csv", check_csv), ("md", check_markdown), ("html", check_html)):
            by_format, by_accept = scenario.formats[instant, form]
            assert by_accept == by_format
            check(by_format, entries)
