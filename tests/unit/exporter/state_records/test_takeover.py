"""Replicas of an exporter publish the losses of one state topic."""

from flow_observations import Scene, flow_config
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.state_record import StateKind
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.state.flow_report import GroupState
from mm2slo_exporter.state.flow_tracker import FlowTracker

ORDERS = TopicPartition("orders", 0)


def replica() -> FlowTracker:
    return FlowTracker(
        flow_config(), carrier=CanaryCarrier.OFF, shared_target=False, started_at=0.0
    )


class Replicas:
    """Two replicas that read a flow stopped at offset 100; retention removes records."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.log = self.scene.add("orders")
        self.log.live(100, 3_000)
        self.log.start = 100
        self.replicas = [replica(), replica()]
        self.published = [0, 0]
        self.leader: int | None = 0
        self.at = 100.0
        self.look(0)
        self.look(1)

    @property
    def lost(self) -> int:
        return (self.log.start or 0) - 100

    def look(self, number: int) -> None:
        self.at += 5.0
        report = self.replicas[number].update(self.scene.look(self.at))
        if number == self.leader:
            self.scene.save_losses(self.replicas[number])
        assert report.totals.lost_records_total >= self.published[number]
        self.published[number] = report.totals.lost_records_total
        assert sum(t.lost_records_total for t in report.topics) == self.published[number]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("remove"), st.integers(1, 50)),
            st.tuples(st.sampled_from(["look", "restart", "lead"]), st.integers(0, 1)),
            st.tuples(st.just("no leader"), st.just(0)),
        ),
        max_size=40,
    )
)
def test_losses_are_exact_whichever_replica_leads_and_restarts(
    steps: list[tuple[str, int]],
) -> None:
    two = Replicas()
    for step, value in steps:
        match step:
            case "remove":
                two.log.start = (two.log.start or 0) + value
            case "look":
                two.look(value)
            case "lead":
                two.leader = value
            case "no leader":
                two.leader = None
            case "restart":
                two.replicas[value] = replica()
                two.look(value)
    for leader in (0, 1):
        two.leader = leader
        for _ in range(4):
            two.look(0)
            two.look(1)
    assert two.published == [two.lost, two.lost]


def test_losses_stay_pending_without_a_leader() -> None:
    two = Replicas()
    two.leader = None
    two.log.start = 140
    for _ in range(3):
        two.look(0)
    report = two.replicas[0].update(two.scene.look(two.at + 5.0))
    assert report.totals.lost_records_total == 0
    assert report.topics[0].pending_lost_records == 40
    two.leader = 0
    two.look(0)
    two.look(0)
    assert two.published[0] == 40


def test_losses_of_an_earlier_log_do_not_hide_those_of_a_recreated_topic() -> None:
    two = Replicas()
    two.scene.source["topic_ids"] = {"orders": "first"}
    two.log.start = 1_000
    for _ in range(3):
        two.look(0)
    assert two.published[0] == 900
    two.scene.source["topic_ids"] = {"orders": "second"}
    two.log.start = 100
    two.replicas[0] = replica()
    two.look(0)
    two.log.start = 130
    for _ in range(4):
        two.look(0)
    assert two.published[0] == 930


class TwoPartitions:
    """The topic orders, of which both partitions have lost 40 records, and a restarted replica."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.scene.source["topic_ids"] = {"orders": "first"}
        self.scene.add("orders", partitions=2)
        self.flow = replica()
        self.at = 100.0
        for start in (100, 140, 140):
            for log in self.scene.logs.values():
                log.live(100, 3_000)
                log.start = start
            self.look()
        self.flow = replica()

    def look(self) -> tuple[int, int]:
        """The lost records of the topic, and of the flow, after one more round."""
        self.at += 5.0
        report = self.flow.update(self.scene.look(self.at))
        self.scene.save_losses(self.flow)
        (topic,) = report.topics
        return topic.lost_records_total, report.totals.lost_records_total


def test_saved_losses_of_a_partition_without_a_leader_are_published_and_kept() -> None:
    two = TwoPartitions()
    first, second = two.scene.logs.values()
    first.end = first.start = None
    assert two.look() == (80, 80)
    second.start = 150
    assert [two.look() for _ in range(3)][-1] == (90, 90)  # its record replaces that of both
    first.end, first.start = 3_000, 140
    assert [two.look() for _ in range(3)] == [(90, 90)] * 3
    first.start = 145
    assert [two.look() for _ in range(3)][-1] == (95, 95)


def test_saved_losses_of_a_partition_that_a_recreated_topic_lacks_are_published_and_kept() -> None:
    two = TwoPartitions()
    del two.scene.logs[TopicPartition("orders", 1)]
    two.scene.source["topic_ids"] = {"orders": "second"}
    (log,) = two.scene.logs.values()
    log.start = 100
    assert two.look() == (80, 80)
    log.start = 120
    assert [two.look() for _ in range(3)][-1] == (100, 100)
    assert two.flow.topics.unsaved_losses() == {}


def test_last_verdicts_survive_a_restart_with_the_source_down() -> None:
    scene = Scene()
    scene.add("orders").live(40, 100)
    scene.source |= {"group_offsets": {"shop": {ORDERS: 60}}, "groups_read_at": {"shop": 99.0}}
    report = replica().update(scene.look(100.0))
    (group,) = report.groups
    point = report.recovery_point
    assert point is not None
    scene.save(StateKind.GROUP, "shop", group.verdict)
    assert group.verdict == GroupState.restored("shop", group.verdict).verdict

    down = Scene(source_readable=False, state=scene.state)
    # The offset syncs are on the source.
    down.internals["waiting_for"] = ("mm2-offset-syncs.eu.internal on us",)
    restored = replica().update(down.look(500.0))
    assert not restored.ready
    (again,) = restored.groups
    assert (again.readiness.blocked, again.commits_at) == (group.readiness.blocked, 99.0)
    assert again.unreplicated == group.unreplicated
    # Once the source answers, the groups are judged again.
    down.source_readable = True
    assert replica().update(down.look(505.0)).groups == ()
