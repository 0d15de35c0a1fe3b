"""Numbers that replicas lease by consumer groups: unique, low, and kept."""

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Self

import pytest

from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

# Leases a number until its standard input is closed, and prints it whenever it changes.
REPLICA = """
import json, sys, threading
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.leadership import LeasedSlot
properties, topic, stopping = json.loads(sys.argv[1]), sys.argv[2], threading.Event()
slot = LeasedSlot(
    ClusterClient("us", properties), prefix=topic, topic=topic, prepare=lambda _stopping: None
)
lease = threading.Thread(target=slot.run, args=(stopping,))
lease.start()
threading.Thread(target=lambda: (sys.stdin.read(), stopping.set()), daemon=True).start()
last = None
while not stopping.wait(0.02):
    if slot.number != last:
        last = slot.number
        print(last, flush=True)
lease.join()
"""


class Replica:
    """A process that leases a number, and the numbers that it has had."""

    def __init__(self, properties: Mapping[str, str], topic: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", REPLICA, json.dumps(dict(properties)), topic],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.numbers: list[str] = []
        self._reading = threading.Thread(target=self._read)

    def __enter__(self) -> Self:
        self._reading.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.numbers.extend(line.strip() for line in self._process.stdout)

    def number(self) -> str:
        """The first number."""
        wait_for(lambda: bool(self.numbers), "a number")
        return self.numbers[0]

    @property
    def newest(self) -> str | None:
        return self.numbers[-1] if self.numbers else None

    def kill(self) -> None:
        self._process.kill()
        self.stop()

    def stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._reading.join()
        self._process.stdout.close()


@pytest.mark.parametrize("partitions", [1, 4])
def test_replicas_get_distinct_numbers_and_a_killed_one_gets_its_own_again(
    lab: Lab, fresh_topic: str, partitions: int
) -> None:
    us = lab.cluster("us")
    us.admin.create_topic(fresh_topic, partitions, {})
    with ExitStack() as running:

        def start() -> Replica:
            return running.enter_context(Replica(us.librdkafka(), fresh_topic))

        # At the same time: both may join the first group, which then hands its number over once.
        together = [start(), start()]
        wait_for(lambda: {each.newest for each in together} == {"0", "1"}, "both numbers")
        kept = [list(each.numbers) for each in together]
        third = start()
        assert third.number() == "2"
        together[0].kill()
        again = start()
        assert again.number() == kept[0][-1]
        # One that ends leaves its number at once.
        third.stop()
        assert start().number() == "2"
        # The others have kept theirs.
        assert (again.numbers, together[1].numbers) == (kept[0][-1:], kept[1])
    with ClusterClient("us", us.librdkafka()) as client:
        groups = {each.group for each in client.groups().groups}
    assert {f"{fresh_topic}.{number}" for number in range(9)} & groups == {
        f"{fresh_topic}.{number}" for number in range(3)
    }
