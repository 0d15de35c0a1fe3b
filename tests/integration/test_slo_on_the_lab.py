"""`/slo` through an outage, against a count of the canaries in the topics themselves.

Four minutes of two flows, one canary a second each, as a user runs them: `mm2slo exporter` and
`mm2slo report serve` with its recorder. MirrorMaker 2 is killed for more than a minute of them.
Every figure must be that of the count. Where a scrape is near to an event, the event may be on
either side of it: the count then gives the least and the most there can be.
"""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import pytest
from rendered.comparing import csv_says, html_says, markdown_says
from slo_run import DEADLINE, LATE, MINUTE, OWN, SCRAPE, SHARED, SHOWN, TIMED, Story, utc
from slo_run.playing import played

if TYPE_CHECKING:
    from collections.abc import Iterator

    from canary_log import Counts

    from mm2slo_core.topology import Flow
    from mm2slo_lab.jars import Progress

pytestmark = [pytest.mark.lab, pytest.mark.long]

ARRIVED: Final = ("uniqueness", "order", "affinity", "completeness")
INDICATORS: Final = [
    *(pytest.param(OWN, name, id=f"own-{name}") for name in (*TIMED, *ARRIVED)),
    *(pytest.param(SHARED, name, id=f"shared-{name}") for name in (*TIMED, "completeness")),
]


@pytest.fixture(scope="module")
def story(lab_progress: Progress, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with played(tmp_path_factory.mktemp("slo"), lab_progress) as told:
        yield told


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


def agrees(said: dict[str, Any], truth: Counts) -> None:
    for name, wanted in truth._asdict().items():
        assert wanted.holds(said[name]), (name, said, truth)
    assert said["good"] + said["bad"] == said["total"]
    assert said["unknown"] == 0


@pytest.mark.parametrize(("flow", "name"), INDICATORS)
def test_each_minute_equals_the_count(story: Story, flow: Flow, name: str) -> None:
    points = story.histories[slo(flow, name)]["points"]
    ends = range(story.known_since + MINUTE, story.end + 1, MINUTE)
    assert [each["end"] for each in points] == [utc(end) for end in ends]
    for point, end in zip(points, ends, strict=True):
        start = max(story.first_scrape, end - MINUTE - SCRAPE)
        agrees(point, story.truth(flow, name, start, end))
        assert point["samples"] == 1
    last = events_of(entry_of(story.lists[story.end], flow, name))
    for what in ("good", "bad", "total", "unknown"):
        assert sum(each[what] for each in points) == last[what]


@pytest.mark.parametrize(("flow", "name"), INDICATORS)
def test_figures_of_every_instant_equal_the_count(story: Story, flow: Flow, name: str) -> None:
    for instant in story.instants:
        entry = entry_of(story.lists[instant], flow, name)
        assert entry["as_of"] == utc(instant)
        agrees(events_of(entry), story.so_far(flow, name, instant))
        alone = story.last_minutes[instant, slo(flow, name)]["entry"]
        assert alone["window"]["start"] == utc(instant - MINUTE)
        start = max(story.first_scrape, instant - MINUTE - SCRAPE)
        agrees(events_of(alone), story.truth(flow, name, start, instant))


@pytest.mark.parametrize("flow", [OWN, SHARED], ids=str)
def test_what_the_outage_cost_is_counted_to_the_event(story: Story, flow: Flow) -> None:
    """The edges of the outage are far from a scrape, so nothing is left open but a threshold."""
    for name in TIMED:
        calm, killed, _, end = (story.so_far(flow, name, each) for each in story.instants)
        assert calm.bad == (0, 0)
        assert killed.bad.least >= 15
        # One a second is waiting when MirrorMaker 2 comes back; one may be at the threshold.
        assert end.bad.most - end.bad.least <= 1
        assert end.bad.least >= 50
    spent = [events_of(entry_of(story.lists[story.end], flow, name))["bad"] for name in TIMED]
    assert spent[1] > spent[0] == spent[2], "more are slower than 5 s than 10 s"


@pytest.mark.parametrize("flow", [OWN, SHARED], ids=str)
def test_what_is_not_decided_yet_is_in_no_figure(story: Story, flow: Flow) -> None:
    scraped = story.killed - SCRAPE
    due = [each for each in story.sent[flow] if story.first_scrape < each.due <= scraped]
    for name in TIMED:
        said = events_of(entry_of(story.lists[story.killed], flow, name))
        # Each waits for its deadline, one a second; an edge may be off by what it shows late.
        assert len(due) - said["total"] == pytest.approx(DEADLINE, abs=SHOWN + LATE)
    complete = events_of(entry_of(story.lists[story.killed], flow, "completeness"))
    available = events_of(entry_of(story.lists[story.killed], flow, "availability"))
    assert (complete["total"], complete["bad"]) == (available["good"], 0)
    assert len(due) - complete["total"] >= 30
    after = story.so_far(flow, "completeness", story.end)
    assert after.bad == (0, 0), "what was out came late, and was not lost"
    assert after.good.least >= len(due) + MINUTE


def test_what_the_kill_made_come_again_is_counted(story: Story) -> None:
    calm, _, _, end = (story.so_far(OWN, "uniqueness", each) for each in story.instants)
    assert calm.bad == (0, 0)
    assert end.bad.exact
    said = events_of(entry_of(story.lists[story.end], OWN, "uniqueness"))
    complete = events_of(entry_of(story.lists[story.end], OWN, "completeness"))
    assert said["bad"] == end.bad.least > 0
    assert said["good"] == complete["good"]


@pytest.mark.parametrize(("flow", "name"), INDICATORS)
def test_budget_coverage_and_status_follow_from_the_counts(
    story: Story, flow: Flow, name: str
) -> None:
    for instant in story.instants:
        entry = entry_of(story.lists[instant], flow, name)
        said, budget, promised = events_of(entry), entry["budget"], entry["objective"]
        allowed = said["total"] * (1 - promised)
        assert budget["total_events"] == pytest.approx(allowed)
        assert budget["remaining_events"] == pytest.approx(allowed - said["bad"])
        assert budget["consumed"] == pytest.approx(said["bad"] / allowed)
        assert budget["remaining"] == pytest.approx(1 - said["bad"] / allowed)
        # A budget is worth a share of the time that is known, not of the whole 28 days.
        minutes = (instant - story.known_since) // MINUTE
        assert budget["total_seconds"] == pytest.approx(minutes * MINUTE * (1 - promised))
        assert budget["remaining_seconds"] == pytest.approx(
            budget["remaining"] * budget["total_seconds"]
        )
        assert entry["sli_value"] == said["good"] / said["total"]
        assert entry["burn_rate"]["1h"] == pytest.approx(budget["consumed"])
        assert entry["status"] == ("breached" if said["bad"] > allowed else "ok")
        assert entry["coverage"] == {
            "ratio": 1.0,
            "last_hour": 1.0,
            "samples": minutes,
            "expected_samples": minutes,
            "known_since": utc(story.known_since),
        }
        assert entry["errors"] == []


@pytest.mark.parametrize("flow", [OWN, SHARED], ids=str)
def test_the_incident_is_the_outage(story: Story, flow: Flow) -> None:
    detail = story.details[story.end, slo(flow, "availability")]
    (incident,) = detail["incidents"]
    assert incident["bad"] == events_of(detail["entry"])["bad"]
    points = story.histories[slo(flow, "availability")]["points"]
    bad = [each for each in points if each["bad"]]
    assert incident["start"] == bad[0]["start"] == utc(story.calm)
    assert incident["end"] == bad[-1]["end"]
    assert sum(each["bad"] for each in detail["days"]) == incident["bad"]


def test_at_in_the_past_gives_what_was_said_then(story: Story) -> None:
    assert list(story.then) == list(story.instants)
    for instant, said in story.then.items():
        assert said["as_of"] == utc(instant)
        assert story.lists[instant] == said
    assert len(story.details_then) == len(story.instants) * len(story.ids())
    for (instant, name), detail in story.details_then.items():
        assert story.details[instant, name] == detail
    states = {
        instant: [
            entry_of(story.lists[instant], flow, "availability")["status"] for flow in (OWN, SHARED)
        ]
        for instant in story.instants
    }
    assert states == {each: ["ok" if each == story.calm else "breached"] * 2 for each in states}


def test_one_objective_is_told_as_in_the_list(story: Story) -> None:
    for instant, name in product(story.instants, story.ids()):
        (listed,) = (each for each in story.lists[instant]["entries"] if each["id"] == name)
        # Lists say of the worst alone since when their alerts burn.
        assert undated(story.details[instant, name]["entry"]) == undated(listed)


def test_every_form_carries_the_same_numbers(story: Story) -> None:
    for instant in story.instants:
        entries = json.loads(story.forms[instant, "json"][0])["entries"]
        assert entries == story.lists[instant]["entries"]
        assert len(entries) == len(story.ids())
        for form, says in (("csv", csv_says), ("md", markdown_says), ("html", html_says)):
            by_format, by_accept = story.forms[instant, form]
            assert by_accept == by_format
            says(by_format, entries)
