"""The evidence of a flow us->eu that can be cut over."""

from typing import Any

from mm2slo_core.cutover.cutover_evidence import (
    AccessFacts,
    CutoverEvidence,
    GroupFact,
    TaskFact,
)

NOW = 10_000.0
FROZEN = NOW - 500
SOURCE, CHECKPOINT = "MirrorSourceConnector", "MirrorCheckpointConnector"


def cutover_group(**fields: Any) -> GroupFact:
    """A group that has read everything, is stopped, and was carried exactly."""
    settled: dict[str, Any] = {
        "group": "shop",
        "carried": True,
        "members_on_source": False,
        "members_on_target": False,
        "remaining": 0,
        "uncommitted": 0,
        "unsynced": 0,
        "unsynced_origins": (),
        "checkpoint_lag": 0,
        "redelivery_least": 0,
        "redelivery_most": 0,
        "skipped_least": 0,
        "skipped_most": 0,
        "blocked": (),
        "commits_read_at": NOW - 1,
        "commits_changed_at": FROZEN,
    }
    return GroupFact(**settled | fields)


SAFE: CutoverEvidence = CutoverEvidence(
    flow="us->eu",
    at=NOW,
    watched_since=FROZEN - 60,
    state="idle",
    state_reason="canaries_arrive",
    arrived_at=NOW - 1,
    canaries=True,
    tasks=tuple(
        TaskFact(name, task, "running") for name in (SOURCE, CHECKPOINT) for task in (None, 0)
    ),
    source_connector=SOURCE,
    checkpoint_connector=CHECKPOINT,
    partitions=12,
    lag_seconds=0.0,
    lag_grows=False,
    frozen_from=FROZEN,
    frozen_until=NOW - 1,
    transactions_read_at=NOW - 2,
    settings_read=True,
    groups_read=True,
    groups_listed_at=NOW - 1,
    group_types_known=True,
    groups=(cutover_group(),),
    settles_after=130.0,
    access=AccessFacts(NOW - 5),
)
