"""What an audit may judge, read from the lab: positions, windows, expiry, reasons not to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from reading import copied

from mm2slo_audit.scoping import open_clients, take_scopes
from mm2slo_core.audit.scope import Comparison, TimestampType, Window
from mm2slo_core.config import load_config
from mm2slo_kafka.traffic import Load, produce
from mm2slo_lab.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_audit.scoping import Scoping
    from mm2slo_lab import Lab

pytestmark = pytest.mark.lab


def window(seconds: float = 600.0) -> Window:
    now = time.time()
    return Window(round((now - seconds) * 1000), round((now + 1) * 1000))


def scope_of(lab: Lab, *topics: str, over: Window | None = None, flow: str = "us->eu") -> Scoping:
    config = load_config(lab.config_yaml())
    with open_clients(config) as clients:
        return take_scopes(config, [flow], topics, over or window(), clients)


def replicated(
    lab: Lab, topic: str, count: int, partitions: int = 1, configs: dict[str, str] | None = None
) -> None:
    us = lab.cluster("us")
    us.admin.create_topic(topic, partitions, configs or {})
    produce(us.librdkafka(), topic, Load(count))
    wait_for(lambda: copied(lab, topic) == count, f"{count} copies of {topic}")


@pytest.fixture
def stopped(lab: Lab) -> Iterator[Lab]:
    """A lab whose MM2 the test stops; it runs again afterwards."""
    yield lab
    if not lab.mm2.running:
        lab.mm2.start()


def test_a_copied_topic_is_judged_up_to_its_position(lab: Lab, fresh_topic: str) -> None:
    replicated(lab, fresh_topic, 300, partitions=3)
    taken = scope_of(lab, fresh_topic)
    assert taken.not_audited == ()
    (scope,) = taken.scopes
    assert scope.target_topic == f"us.{fresh_topic}"
    assert scope.comparison is Comparison.RECORDS
    assert scope.target_time is TimestampType.CREATE
    assert scope.max_pending == 300_000
    (flow,) = scope.flows
    assert (flow.flow.label, flow.source_topic) == ("us->eu", fresh_topic)
    assert flow.has_positions
    assert sum(each.end for each in flow.partitions) == 300
    assert [each.end for each in scope.partitions] == [each.end for each in flow.partitions]
    for each in flow.partitions:
        assert (each.log_start, each.read_from, each.known_from, each.expired) == (0, 0, 0, 0)
        # MM2 writes a sync for the first record of a partition at once.
        assert each.next_offset is not None
        assert 1 <= each.next_offset <= each.end
    assert all(each.auditable_from == 0 for each in scope.partitions)
    assert abs(time.time() * 1000 - scope.taken_at) < 30_000
    assert taken.planned == 600
