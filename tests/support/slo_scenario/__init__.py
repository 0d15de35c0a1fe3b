"""A run of two flows with an outage, and the report service's answers."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import requests
from canary_log import Counts, Event, Sent, count

from mm2slo_core.topology import Flow
from mm2slo_lab.managed_process import wait_for

OWN_TOPIC, HEARTBEATS = Flow("us", "eu"), Flow("eu", "us")
"""A flow whose canaries use their own topic, and one whose canaries use the heartbeats topic."""
INSTANCE: Final = "slo-on-the-lab"
DEADLINE: Final = 10.0
TIERS: Final = {"latency-5s": 5.0, "latency-10s": 10.0}
TIMED_SLIS: Final = ("availability", *TIERS)
STEP: Final = 300
"""Length of the report service's steps."""
SCRAPE: Final = 15
"""Default scrape interval; also the time from a step's last scrape to its end."""
PUBLISH_DELAY: Final = 4.0
"""Seconds until the exporter publishes an event: two processes and a cycle of 0.5 s."""
SCRAPE_DELAY: Final = 2.0
"""Seconds by which a scrape may be late."""
_SETTLE_SECONDS: Final = 3
"""Seconds after a step's end when the service is queried."""

FORMATS: Final = {
    "json": "application/json",
    "csv": "text/csv",
    "md": "text/markdown",
    "html": "text/html",
}


def utc(at: float) -> str:
    """Format a time as the service does."""
    return f"{datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat()}Z"


@dataclass
class SloScenario:
    """The service's answers during the run and afterwards, and the canary log."""

    url: str
    first_scrape: float = 0.0
    """Earlier events are unknown."""
    known_since: int = 0
    """The start of the first step."""
    before_kill: int = 0
    """The end of the step at which MirrorMaker 2 was killed; the other instants follow by steps."""
    live_lists: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Lists by instant, queried right after it."""
    live_details: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    lists: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The same lists, queried at the end."""
    details: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    histories: dict[str, dict[str, Any]] = field(default_factory=dict)
    one_step_reports: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    """Reports for a period of one step."""
    formats: dict[tuple[int, str], tuple[str, str]] = field(default_factory=dict)
    """Reports requested by `format` and by `Accept`."""
    sent: dict[Flow, list[Sent]] = field(default_factory=dict)
    log: dict[Flow, dict[str, list[Event]]] = field(default_factory=dict)

    @property
    def after_kill(self) -> int:
        """A step after the kill, when MirrorMaker 2 was started again."""
        return self.before_kill + STEP

    @property
    def end(self) -> int:
        """When all events are settled."""
        return self.before_kill + 2 * STEP

    @property
    def instants(self) -> range:
        """The three instants that tests compare."""
        return range(self.before_kill, self.end + 1, STEP)

    def get(self, path: str, accept: str = "*/*", **query: str) -> requests.Response:
        """Query the service; the status must be 200."""
        answer = requests.get(
            f"{self.url}{path}", params=query, headers={"Accept": accept}, timeout=60
        )
        assert answer.status_code == 200, answer.text
        return answer

    def objective_ids(self) -> list[str]:
        """Ids of all objectives."""
        return sorted(each["id"] for each in self.live_lists[self.before_kill]["entries"])

    def record_answers(self, instant: int) -> None:
        """Wait until the service reports *instant*, then store its answers."""
        left = instant + _SETTLE_SECONDS - time.time()
        wait_for(lambda: time.time() >= instant + _SETTLE_SECONDS, utc(instant), left + 10)

        def is_reported() -> bool:
            self.live_lists[instant] = self.get("/slo").json()
            as_of: str = self.live_lists[instant]["as_of"]
            return as_of == utc(instant)

        wait_for(is_reported, f"the report at {utc(instant)}")
        for slo in self.objective_ids():
            self.live_details[instant, slo] = self.get(f"/slo/{slo}").json()

    def query_history(self) -> None:
        """Query all instants after the run."""
        since = utc(self.known_since)
        for instant in self.instants:
            at = utc(instant)
            self.lists[instant] = self.get("/slo", at=at).json()
            for slo in self.objective_ids():
                self.details[instant, slo] = self.get(f"/slo/{slo}", at=at).json()
                self.one_step_reports[instant, slo] = self.get(
                    f"/slo/{slo}", at=at, period="5m"
                ).json()
            for form, media in FORMATS.items():
                named = self.get("/slo/report", at=at, format=form)
                wanted = self.get("/slo/report", at=at, accept=media)
                assert named.headers["content-type"].partition(";")[0] == media
                assert wanted.headers["content-type"] == named.headers["content-type"]
                self.formats[instant, form] = named.text, wanted.text
        for slo in self.objective_ids():
            query = {"from": since, "to": utc(self.end), "step": "5m"}
            self.histories[slo] = self.get(f"/slo/{slo}/history", **query).json()

    def truth(self, flow: Flow, name: str, start: float, end: int) -> Counts:
        """Counts by the log for scrapes after *start* up to the last one before *end*."""
        return count(
            self.log[flow][name], start, end - SCRAPE, shown=PUBLISH_DELAY, late=SCRAPE_DELAY
        )

    def so_far(self, flow: Flow, name: str, instant: int) -> Counts:
        """Counts by the log since the first scrape."""
        return self.truth(flow, name, self.first_scrape, instant)
