"""How often an exporter whose login is refused logs in, as the broker counts it."""

import re
import time
from datetime import datetime

import pytest
from exporter_watch import Scrape, Watch, watch
from secured_listeners import add_scram_user

from mm2slo_lab.broker import Broker
from mm2slo_lab.lab_topology import User
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("secured-lab")]

FLOW, USER = "us->eu", User("watcher", "watcher-secret")
GRANTS = (("TOPIC", "*"), ("GROUP", "*"))
REFUSED = re.compile(r"^\[([^\]]+)\].* Failed authentication .*invalid credentials", re.MULTILINE)
OBSERVED_SECONDS = 130.0
SETTLED_SECONDS = 20.0
"""Requests that are in progress when the first login is refused last half as long."""


def refused_logins(broker: Broker) -> list[float]:
    """When each login was refused, by the broker's log."""
    text = broker.process.spec.log_file.read_text(encoding="utf-8", errors="replace")
    return [datetime.fromisoformat(at).timestamp() for at in REFUSED.findall(text)]


def most_in_a_minute(times: list[float]) -> int:
    return max(sum(start <= each < start + 60 for each in times) for start in times)


def is_observed(scrape: Scrape) -> bool:
    return scrape.state(FLOW) in {"idle", "running"}


def refusals(seen: Watch) -> float:
    """How many requests to the source were not sent since its last login was refused."""
    name = "mm2_exporter_collect_errors_total"
    return sum(seen.scrape().values(name, cluster="us", reason="authentication").values())


def test_refused_logins_are_at_most_four_a_minute_and_end_with_a_fix(secured_lab: Lab) -> None:
    us, eu = secured_lab.cluster("us"), secured_lab.cluster("eu")
    for broker in (us, eu):
        for resource, name in GRANTS:
            broker.admin.grant(USER.name, resource, name, "ALL")
    add_scram_user(eu, USER.name, USER.password)
    with watch(secured_lab, [FLOW], user=USER) as seen:
        wait_for(lambda: bool(refused_logins(us)), "a refused login")
        first = refused_logins(us)[0]
        wait_for(lambda: time.time() > first + OBSERVED_SECONDS, "130 s", OBSERVED_SECONDS + 10)
        assert most_in_a_minute(refused_logins(us)) <= 4
        counted = refusals(seen)
        wait_for(lambda: refusals(seen) > counted, "another error")  # the alert needs them

        add_scram_user(us, USER.name, USER.password)
        seen.until(is_observed, "the flow after the fix")

        # Connections outlive a password, but not a broker: each client then fails to log in.
        before = len(refused_logins(us))
        add_scram_user(us, USER.name, "another-secret")
        us.stop()
        us.start()
        wait_for(lambda: len(refused_logins(us)) > before, "a refused login")
        first = refused_logins(us)[before]
        wait_for(lambda: time.time() > first + OBSERVED_SECONDS, "130 s", OBSERVED_SECONDS + 10)
        later = refused_logins(us)[before:]
        assert most_in_a_minute([each for each in later if each > first + SETTLED_SECONDS]) <= 4

        add_scram_user(us, USER.name, USER.password)
        seen.exporter.reload()
        seen.until(is_observed, "the flow after a reload")
