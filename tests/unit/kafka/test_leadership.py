from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from mm2slo_kafka.handles import HandleFactory
from mm2slo_kafka.leadership import Leadership

if TYPE_CHECKING:
    import pytest


def test_an_election_on_a_cluster_that_is_away_is_told_in_the_log_alone(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = HandleFactory("eu", {"bootstrap.servers": "127.0.0.1:1"})
    election = Leadership(nowhere, group="mm2slo.timeline.us-to-eu", topic="t")
    with caplog.at_level(logging.WARNING):
        election.start()
        deadline = time.monotonic() + 10
        while not caplog.records and time.monotonic() < deadline:
            time.sleep(0.05)
        election.stop()
    assert not election.leading
    # librdkafka's own writer would tell each attempt on standard error, several a second.
    assert capfd.readouterr().err == ""
    told = [found.getMessage() for found in caplog.records]
    assert any("librdkafka on cluster eu: FAIL" in line for line in told)
    assert len(told) <= 5
