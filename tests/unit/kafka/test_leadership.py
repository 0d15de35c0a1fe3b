import logging
import threading
import time

import pytest

from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.leadership import Leadership


def test_election_on_unreachable_cluster_writes_to_log_only(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    unreachable = HandleFactory("eu", {"bootstrap.servers": "127.0.0.1:1"})
    election = Leadership(unreachable, group="mm2slo.leader.us-to-eu", topic="t")
    stopping = threading.Event()
    with caplog.at_level(logging.WARNING):
        thread = threading.Thread(target=election.run, args=(stopping,))
        thread.start()
        deadline = time.monotonic() + 10
        while not caplog.records and time.monotonic() < deadline:
            time.sleep(0.05)
        stopping.set()
        thread.join()
    assert not election.leading
    # By default, librdkafka writes each attempt to standard error, several per second.
    assert capfd.readouterr().err == ""
    lines = [found.getMessage() for found in caplog.records]
    assert any("librdkafka on cluster eu: FAIL" in line for line in lines)
    assert len(lines) <= 5
