"""What the state topic holds of a flow: all replicas publish the losses that it contains."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mm2slo_core.state_record import RecoveryPoint, State, StateKey, TopicLosses, Verdict
from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.certain_loss import SavedLoss


@dataclass(frozen=True, slots=True)
class SavedState:
    """The newest record of each key of one flow."""

    records: Mapping[StateKey, State] = field(default_factory=dict)
    losses: Mapping[TopicPartition, SavedLoss] = field(default_factory=dict)
    topic_ids: Mapping[str, str | None] = field(default_factory=dict)
    """Of the logs that the losses refer to."""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    recovery_point: RecoveryPoint | None = None

    @classmethod
    def of(cls, records: Mapping[StateKey, State]) -> SavedState:
        losses: dict[TopicPartition, SavedLoss] = {}
        topic_ids: dict[str, str | None] = {}
        verdicts: dict[str, Verdict] = {}
        recovery_point = None
        for key, state in records.items():
            match state:
                case TopicLosses():
                    topic = key.name.partition("/")[0]
                    topic_ids[topic] = state.topic_id
                    losses |= {TopicPartition(topic, n): v for n, v in state.partitions.items()}
                case Verdict():
                    verdicts[key.name] = state
                case RecoveryPoint():
                    recovery_point = state
        return cls(dict(records), losses, topic_ids, verdicts, recovery_point)
