"""The thread of the service, by a clock that is set by hand."""

from __future__ import annotations

import logging
import threading
from zoneinfo import ZoneInfo

import pytest
from digests import NOW

from mm2slo_core.errors import UserError
from mm2slo_core.reporting.schedule import Schedule
from mm2slo_report.digest.loop import DigestLoop
from mm2slo_report.digest.once import Outcome
from mm2slo_report.digest.posting.port import Unsure

BERLIN = ZoneInfo("Europe/Berlin")
MONDAYS = Schedule.parse("mon 09:00")
HOUR = 3_600_000
WEEK = 7 * 24 * HOUR


class Service:
    """A loop, its clock, and what it posted."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.posted: list[int] = []
        self.fails: Exception | None = None
        self.outcome = Outcome.POSTED
        self.happened = threading.Event()
        self.loop = DigestLoop("of 7d to ops", MONDAYS, BERLIN, self._post, lambda: self.now)

    def _post(self, due: int) -> Outcome:
        if self.fails is not None:
            raise self.fails
        self.posted.append(due)
        self.happened.set()
        return self.outcome


def test_it_posts_when_it_is_due_and_once() -> None:
    service = Service(NOW - WEEK + 7 * HOUR)
    assert service.loop.step() == 60.0
    assert service.posted == []
    service.now = NOW - 5_000
    assert service.loop.step() == 5.0
    for _ in range(3):
        service.now = NOW + 100
        service.loop.step()
    assert service.posted == [NOW]


def test_a_service_that_was_down_posts_up_to_six_hours_late() -> None:
    late, too_late = Service(NOW + 6 * HOUR), Service(NOW + 6 * HOUR + 1)
    late.loop.step()
    too_late.loop.step()
    assert (late.posted, too_late.posted) == ([NOW], [])


@pytest.mark.parametrize("failure", [UserError("Slack is away"), RuntimeError("a fault")])
def test_a_failure_is_told_and_tried_again(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    service = Service(NOW)
    service.fails = failure
    assert service.loop.step() == 300.0
    assert "digest of 7d to ops: " in caplog.text
    service.fails = None
    service.now += 300_000
    service.loop.step()
    assert service.posted == [NOW]


def test_what_may_have_been_posted_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    service = Service(NOW)
    service.fails = Unsure("it may be there")
    assert service.loop.step() == 60.0
    assert caplog.record_tuples == [
        ("mm2slo_report.digest.loop", logging.ERROR, "digest of 7d to ops: it may be there")
    ]
    service.fails = None
    service.loop.step()
    assert service.posted == []


def test_what_another_process_claimed_is_looked_at_again_then_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = Service(NOW)
    service.outcome = Outcome.CLAIMED
    assert service.loop.step() == 300.0
    assert caplog.records == []
    service.now += 300_000
    assert service.loop.step() == 60.0
    assert "has not told of its end; look at the channel" in caplog.text
    service.loop.step()
    assert service.posted == [NOW, NOW]


def test_it_runs_in_a_thread_until_it_is_ended() -> None:
    service = Service(NOW)
    service.loop.start()
    assert service.happened.wait(10)
    service.loop.end(10)
    assert service.posted == [NOW]
    assert "mm2slo-digest" not in {each.name for each in threading.enumerate()}
