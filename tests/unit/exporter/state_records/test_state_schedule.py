"""State records are written on change, and again until they are read back."""

from collections.abc import Mapping
from dataclasses import replace

from flow_observations import Scene, flow_config

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.indicators.certain_loss import SavedLoss
from mm2slo_core.indicators.group_readiness import Blocked, BlockReason, GroupReadiness
from mm2slo_core.state_record import StateKey, TopicLosses, decode_state
from mm2slo_core.topology import Flow
from mm2slo_exporter.state.flow_report import GroupState
from mm2slo_exporter.state.flow_tracker import FlowTracker
from mm2slo_exporter.timeline.record_schedule import StateSchedule

LOST = TopicLosses("id", {0: SavedLoss(40, 90)})


class Leader:
    """A leader of a flow without topics; `topic` takes what it writes when `read_back` is set."""

    def __init__(self) -> None:
        self.scene = Scene(source={"groups_complete": True})
        self.tracker = FlowTracker(
            flow_config(), carrier=CanaryCarrier.OFF, shared_target=False, started_at=0.0
        )
        self.schedule = StateSchedule(Flow("us", "eu"))
        self.groups: tuple[GroupState, ...] = ()
        self.read_back = True

    def write(self, at: float, losses: Mapping[str, TopicLosses] | None = None) -> list[str]:
        """Names of the records written at *at*, without the recovery point."""
        seen = self.scene.look(at)
        report = replace(self.tracker.update(seen), groups=self.groups, recovery_point=None)
        names = []
        for encoded, value in self.schedule.due(seen, report, losses or {}):
            key = StateKey.decode(encoded)
            names.append(key.name + "-" * (value is None))
            if self.read_back and value is None:
                del self.scene.state[key]
            elif self.read_back and value is not None:
                self.scene.state[key] = decode_state(key, value)
        return names


def group(*reasons: BlockReason, redelivery: int = 0, commits_at: float = 1.0) -> GroupState:
    blocked = tuple(map(Blocked, reasons))
    readiness = GroupReadiness("shop", not blocked, blocked, 0, redelivery, redelivery, ())
    return GroupState("shop", readiness, 1.0, {}, commits_at)


def test_loss_is_written_at_once_and_again_until_it_is_read_back() -> None:
    leader = Leader()
    leader.read_back = False
    wrote = [leader.write(at, {"orders": LOST}) for at in (0.0, 5.0, 59.0, 60.0)]
    assert wrote == [["orders"], [], [], ["orders"]]
    leader.schedule.reset()  # a delivery failed
    leader.read_back = True
    more = TopicLosses("id", {0: SavedLoss(41, 91)})
    assert [leader.write(61.0, {"orders": LOST}), leader.write(62.0, {"orders": more})] == [
        ["orders"],
        ["orders"],
    ]
    assert leader.scene.look(63.0).lost_records == 41


def test_verdict_is_written_at_once_when_it_changes_else_once_a_minute() -> None:
    leader = Leader()
    found = []
    for at, state in (
        (0.0, group()),
        (5.0, group()),
        (10.0, group(redelivery=3)),
        (15.0, group(BlockReason.NO_CHECKPOINT)),
        (20.0, group(BlockReason.NO_CHECKPOINT, redelivery=4)),
        (75.0, group(BlockReason.NO_CHECKPOINT, redelivery=4)),
        (80.0, group(BlockReason.NO_CHECKPOINT, redelivery=4)),
        # The clock was set back.
        (-3600.0, group(BlockReason.NO_CHECKPOINT, redelivery=5)),
    ):
        leader.groups = (state,)
        found.append(len(leader.write(at)))
    assert found == [1, 0, 0, 1, 0, 1, 0, 1]


def test_group_without_commits_is_removed_once_the_groups_were_read() -> None:
    leader = Leader()
    leader.groups = (group(),)
    leader.write(0.0)
    leader.groups = ()
    leader.scene.source_readable = False
    assert leader.write(100.0) == []
    leader.scene.source_readable = True
    assert leader.write(105.0) == ["shop-"]
    assert leader.write(110.0) == []
