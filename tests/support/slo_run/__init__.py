"""A run of two flows through an outage, and what the report service says of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import requests
from canary_log import Counts, Event, Sent, count

from mm2slo_core.topology import Flow
from mm2slo_lab.waiting import wait_for

OWN, SHARED = Flow("us", "eu"), Flow("eu", "us")
"""Whose canaries have a topic of their own, and whose are on MirrorMaker 2's heartbeats topic."""
INSTANCE: Final = "slo-on-the-lab"
DEADLINE: Final = 10.0
TIERS: Final = {"latency-5s": 5.0, "latency-10s": 10.0}
TIMED: Final = ("availability", *TIERS)
MINUTE: Final = 60
SCRAPE: Final = 15
"""Seconds between two scrapes, by default; the last one of a minute is so long before its end."""
SHOWN: Final = 4.0
"""Until an event is on the exporter's page: two processes and a round of 0.5 s."""
LATE: Final = 2.0
"""By which a scrape may come after it is due."""
_SAID: Final = 3
"""Seconds after a minute's end at which the service is asked for it."""

FORMS: Final = {
    "json": "application/json",
    "csv": "text/csv",
    "md": "text/markdown",
    "html": "text/html",
}


def utc(at: float) -> str:
    """As the service writes it."""
    return f"{datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat()}Z"


@dataclass
class Story:
    """What the service said as it happened, what it says afterwards, and the log."""

    url: str
    first_scrape: float = 0.0
    """What was counted before it is not known."""
    known_since: int = 0
    """The minute of the first sample."""
    calm: int = 0
    """The whole minute after which MirrorMaker 2 was killed; the others follow, one a minute."""
    then: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Lists by their instant, as they were given when it had just passed."""
    details_then: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    lists: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The same, asked for when all was over."""
    details: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    histories: dict[str, dict[str, Any]] = field(default_factory=dict)
    last_minutes: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    """Reports over one minute alone."""
    forms: dict[tuple[int, str], tuple[str, str]] = field(default_factory=dict)
    """By `format` and by `Accept`."""
    sent: dict[Flow, list[Sent]] = field(default_factory=dict)
    log: dict[Flow, dict[str, list[Event]]] = field(default_factory=dict)

    @property
    def killed(self) -> int:
        """The minute's end after MirrorMaker 2 was killed; it was started again then."""
        return self.calm + MINUTE

    @property
    def end(self) -> int:
        """All is decided."""
        return self.calm + 3 * MINUTE

    @property
    def instants(self) -> range:
        """Four whole minutes that are looked at."""
        return range(self.calm, self.end + 1, MINUTE)

    def ask(self, path: str, accept: str = "*/*", **query: str) -> requests.Response:
        """The service's answer, which must be 200."""
        answer = requests.get(
            f"{self.url}{path}", params=query, headers={"Accept": accept}, timeout=30
        )
        assert answer.status_code == 200, answer.text
        return answer

    def ids(self) -> list[str]:
        """Of all objectives."""
        return sorted(each["id"] for each in self.then[self.calm]["entries"])

    def hear(self, instant: int) -> None:
        """Ask for the present, once *instant* has come and the service speaks of it."""
        left = instant + _SAID - time.time()
        wait_for(lambda: time.time() >= instant + _SAID, utc(instant), left + 10)

        def told() -> bool:
            self.then[instant] = self.ask("/slo").json()
            as_of: str = self.then[instant]["as_of"]
            return as_of == utc(instant)

        wait_for(told, f"figures of {utc(instant)}")
        for slo in self.ids():
            self.details_then[instant, slo] = self.ask(f"/slo/{slo}").json()

    def look_back(self) -> None:
        """Ask for all that has passed."""
        since = utc(self.known_since)
        for instant in self.instants:
            at = utc(instant)
            self.lists[instant] = self.ask("/slo", at=at).json()
            for slo in self.ids():
                self.details[instant, slo] = self.ask(f"/slo/{slo}", at=at).json()
                self.last_minutes[instant, slo] = self.ask(f"/slo/{slo}", at=at, period="1m").json()
            for form, media in FORMS.items():
                named = self.ask("/slo/report", at=at, format=form)
                wanted = self.ask("/slo/report", at=at, accept=media)
                assert named.headers["content-type"].partition(";")[0] == media
                assert wanted.headers["content-type"] == named.headers["content-type"]
                self.forms[instant, form] = named.text, wanted.text
        for slo in self.ids():
            query = {"from": since, "to": utc(self.end), "step": "1m"}
            self.histories[slo] = self.ask(f"/slo/{slo}/history", **query).json()

    def truth(self, flow: Flow, name: str, start: float, end: int) -> Counts:
        """By the log, of what the scrapes after *start* up to the last one before *end* show."""
        return count(self.log[flow][name], start, end - SCRAPE, shown=SHOWN, late=LATE)

    def so_far(self, flow: Flow, name: str, instant: int) -> Counts:
        """Since the first scrape."""
        return self.truth(flow, name, self.first_scrape, instant)
