"""Rounds of scraping: side by side, and nobody's page twice or late."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from mm2slo_report.recording.exposition import Page
from mm2slo_report.recording.rounds import Rounds
from mm2slo_report.recording.scraping import ScrapeError, Target


@dataclass
class Slow:
    """Gives pages that say which one they are, each once `go` is set."""

    target: Target = field(default_factory=lambda: Target.at("http://slow"))
    go: threading.Event = field(default_factory=threading.Event)
    given: threading.Event = field(default_factory=threading.Event)
    pages: int = 0
    closed: bool = False

    def scrape(self) -> Page:
        self.pages += 1
        number = self.pages
        self.go.wait(20)
        self.given.set()
        return Page({}, started=number)

    def close(self) -> None:
        self.closed = True


@dataclass
class Releasing(Slow):
    """Lets `held` go as it is asked for the second time."""

    held: Slow | None = None

    def scrape(self) -> Page:
        self.pages += 1
        if self.pages > 1 and self.held is not None:
            self.held.go.set()
        return Page({})


class Broken(Slow):
    def scrape(self) -> Page:
        raise KeyError("unforeseen")


def test_a_page_that_comes_late_is_not_taken_for_one_of_now() -> None:
    slow = Slow()
    rounds = Rounds([slow], timeout=0.01)
    (late,) = rounds.scrape().values()
    assert str(late) == "it did not answer within 0.01 s"
    (still,) = rounds.scrape().values()
    assert isinstance(still, ScrapeError)
    assert slow.pages == 1, "it is not asked twice at once"
    rounds.close()
    assert not slow.closed, "its connection is in use"
    slow.go.set()
    assert slow.given.wait(20)
    found = {**rounds.scrape(), **rounds.scrape()}
    assert list(found.values()) == [Page({}, started=slow.pages)]
    assert slow.pages > 1
    rounds.close()
    assert slow.closed


def test_a_page_of_the_round_before_is_of_no_use_in_this_one() -> None:
    slow, other = Slow(), Releasing(target=Target.at("http://other"))
    other.held = slow
    rounds = Rounds([slow, other], timeout=0.01)
    rounds.scrape()
    assert rounds.scrape().keys() == {other.target.name}
    assert slow.given.is_set()


def test_a_scraper_that_fails_in_an_unforeseen_way_is_a_problem_of_its_target() -> None:
    (problem,) = Rounds([Broken()]).scrape().values()
    assert str(problem) == "it failed in an unforeseen way: KeyError"


def test_a_round_after_the_end_is_empty() -> None:
    rounds = Rounds([Slow()])
    rounds.end()
    assert rounds.scrape() == {}
