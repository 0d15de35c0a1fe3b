"""A source whose log is truncated, as by a restored disk or an unclean leader election."""

import shutil
from pathlib import Path

import pytest
from exporter_watch import Scrape, Watch, watch
from flow_checks import create_replicated_topic, position_qualities
from tests.integration.conftest import LabFactory
from topic_reader import count_copies

from mm2slo_core.topology import Flow
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("fault-lab")]

US_EU = Flow("us", "eu")
TOPIC = "orders"
LAG = "mm2_replication_lag_records"
POSITION = "mm2_replicated_source_offset"
LOST = "mm2_retention_lost_records_total"


class RestoredDisk:
    """A copy of the topic's log with 80 records, which replaces the current one."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.us = lab.cluster("us")
        self._log = lab.runtime.root / "us" / "data" / f"{TOPIC}-0"
        self._copy = folder / "log"
        self.us.stop()
        shutil.copytree(self._log, self._copy)
        self.us.start()

    def restore(self) -> None:
        self.us.stop()
        shutil.rmtree(self._log)
        shutil.copytree(self._copy, self._log)
        self.us.start()
        wait_for(lambda: self.us.admin.end_offsets(TOPIC) == {0: 80}, "the restored log")


def bounded(seen: Watch) -> Scrape:
    """Wait until the truncation is seen, and check that nothing counts as lag."""
    seen.until(lambda s: position_qualities(s, US_EU, TOPIC) == {"bounded"}, "a bounded position")
    found = seen.after_cycles(10)
    assert position_qualities(found, US_EU, TOPIC) == {"bounded"}
    assert found.value(POSITION, topic=TOPIC) == 80
    assert found.value(LAG, topic=TOPIC) == found.value("mm2_flow_lag_seconds") == 0
    return found


def until_live(seen: Watch, position: int) -> Scrape:
    """Wait until everything up to *position* is replicated by a commit or sync of the new log."""
    found = seen.until(
        lambda s: (
            s.value(POSITION, topic=TOPIC) == position
            and position_qualities(s, US_EU, TOPIC) == {"live"}
        ),
        f"the live position {position}",
    )
    assert found.value(LAG, topic=TOPIC) == 0
    return found


def test_truncated_source_has_exact_position_before_and_after_restart(
    lab_factory: LabFactory, tmp_path: Path
) -> None:
    lab = lab_factory()
    us = lab.cluster("us").librdkafka()
    create_replicated_topic(lab, TOPIC, 80)
    disk = RestoredDisk(lab, tmp_path)
    with watch(lab, ["us->eu"], flow={"topics": [TOPIC], "stall_after": "3s"}) as seen:
        seen.until_ready()
        produce(us, TOPIC, Load(20, first=80))
        until_live(seen, 100)
        disk.restore()
        found = bounded(seen)
        assert found.value("mm2_source_truncations_total", topic=TOPIC) == 1
        assert found.state("us->eu") == "idle"
        # MirrorMaker 2 continues at the point of divergence.
        produce(us, TOPIC, Load(26, first=200))
        done = until_live(seen, 106)
        assert count_copies(lab, TOPIC) == 100 + 26
        assert done.value(LOST, topic=TOPIC) == 0

        # It is stopped meanwhile: its commit is beyond the end, so it reads all records again.
        lab.mm2.stop()
        disk.restore()
        bounded(seen)
        lab.mm2.start()
        until_live(seen, 80)
        assert count_copies(lab, TOPIC) == 126 + 80
        assert seen.after_cycles().value(LOST, topic=TOPIC) == 0

        # It is stopped while the new log outgrows its commit (119): it skips up to there.
        produce(us, TOPIC, Load(40, first=300))
        until_live(seen, 120)
        lab.mm2.stop()
        disk.restore()
        bounded(seen)
        produce(us, TOPIC, Load(70, first=400))
        seen.until(lambda s: s.value(LAG, topic=TOPIC) == 70, "the backlog")
        lab.mm2.start()
        until_live(seen, 150)
        assert count_copies(lab, TOPIC) == 206 + 40 + 30
        seen.until(lambda s: s.value(LOST, topic=TOPIC) == 40, "the skipped records")
