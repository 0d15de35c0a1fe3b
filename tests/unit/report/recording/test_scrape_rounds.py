"""Scrape rounds: concurrent, without duplicate or outdated pages."""

import threading
from dataclasses import dataclass, field

from mm2slo_report.recording.exporter_scraper import ScrapeError, ScrapeRounds, ScrapeTarget
from mm2slo_report.recording.scraped_counters import Page


@dataclass
class SlowScraper:
    """Returns numbered pages once `go` is set."""

    target: ScrapeTarget = field(default_factory=lambda: ScrapeTarget.at("http://slow"))
    go: threading.Event = field(default_factory=threading.Event)
    returned: threading.Event = field(default_factory=threading.Event)
    pages: int = 0
    closed: bool = False

    def scrape(self) -> Page:
        self.pages += 1
        number = self.pages
        self.go.wait(20)
        self.returned.set()
        return Page({}, started=number)

    def close(self) -> None:
        self.closed = True


@dataclass
class ReleasingScraper(SlowScraper):
    """Releases `held` at its second scrape."""

    held: SlowScraper | None = None

    def scrape(self) -> Page:
        self.pages += 1
        if self.pages > 1 and self.held is not None:
            self.held.go.set()
        return Page({})


class FailingScraper(SlowScraper):
    def scrape(self) -> Page:
        raise KeyError("unexpected")


def test_scrape_ignores_a_page_that_is_too_late() -> None:
    slow = SlowScraper()
    rounds = ScrapeRounds([slow], timeout=0.01)
    (late,) = rounds.scrape().values()
    assert str(late) == "no response within 0.01 s"
    (still,) = rounds.scrape().values()
    assert isinstance(still, ScrapeError)
    assert slow.pages == 1, "it is not scraped twice concurrently"
    rounds.close()
    assert not slow.closed, "its connection is in use"
    slow.go.set()
    assert slow.returned.wait(20)
    found = {**rounds.scrape(), **rounds.scrape()}
    assert list(found.values()) == [Page({}, started=slow.pages)]
    assert slow.pages > 1
    rounds.close()
    assert slow.closed


def test_scrape_ignores_a_page_of_the_previous_round() -> None:
    slow, other = SlowScraper(), ReleasingScraper(target=ScrapeTarget.at("http://other"))
    other.held = slow
    rounds = ScrapeRounds([slow, other], timeout=0.01)
    rounds.scrape()
    assert rounds.scrape().keys() == {other.target.name}
    assert slow.returned.is_set()


def test_scrape_unexpected_error_is_reported_for_its_target() -> None:
    (problem,) = ScrapeRounds([FailingScraper()]).scrape().values()
    assert str(problem) == "unexpected error: KeyError"


def test_scrape_after_end_is_empty() -> None:
    rounds = ScrapeRounds([SlowScraper()])
    rounds.end()
    assert rounds.scrape() == {}
