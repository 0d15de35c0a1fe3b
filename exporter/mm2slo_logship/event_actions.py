"""The messages of MirrorMaker 2 and Kafka Connect that matter, as event actions.

One table for Kafka 3.9 and 4.x; tests find each anchor in the classes of both. Loggers are classes
without their packages.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple


class EventAction(NamedTuple):
    """A message that contains *anchor*; `details` are fields that its regex reads from it."""

    name: str
    loggers: str
    anchor: str
    details: re.Pattern[str] | None = None
    needs_error: bool = False


def _action(
    name: str, loggers: str, anchor: str, details: str = "", *, needs_error: bool = False
) -> EventAction:
    return EventAction(name, loggers, anchor, re.compile(details) if details else None, needs_error)


_TOPIC = r"topic (?P<topic>[\w.-]+?)\.?(?:$| with )"
_GROUP = r"consumer group (?P<group>.+?)(?:\.(?: This is likely|$)| on cluster )"
_PARTITION = r"partition (?P<topic>[\w.-]+)-(?P<partition>\d+) "
_SCHEDULED = r"running task: (?P<job>.+)"
_TASK = "WorkerSourceTask ExactlyOnceWorkerSourceTask AbstractWorkerSourceTask"

EVENT_ACTIONS: Final = (
    _action(
        "task_failed",
        "WorkerTask",
        "Task is being killed and will not recover until manually restarted",
    ),
    _action("task_started", _TASK, "Source task finished initialization and start"),
    _action("task_zombie", "WorkerTask", "orphan task threw an uncaught exception"),
    _action("task_zombie", "Worker", " failed."),  # Graceful stop of task {} failed.
    _action("source_poll_failed", "MirrorSourceTask", "Failure during poll."),
    _action(
        "offsets_committing",
        _TASK,
        "Committing offsets for ",
        r"for (?P<records>\d+) acknowledged messages",
    ),
    _action("offset_flush_failed", _TASK, "Timed out waiting to flush offsets to storage"),
    _action("offset_flush_failed", _TASK, "Failed to flush offsets to storage"),
    _action("offset_flush_failed", _TASK, "Flush of offsets threw an unexpected exception"),
    _action("offset_flush_failed", _TASK, "Failed to commit producer transaction"),
    _action("offset_flush_failed", "SourceTaskOffsetCommitter", "Failed to commit offsets"),
    _action("produce_failed", _TASK, "failed to send record to ", r"to (?P<topic>[\w.-]+): ?$"),
    _action("produce_failed", _TASK, "Failed to send record to topic", r"topic '(?P<topic>[^']+)'"),
    _action(
        "offset_sync_impossible",
        "MirrorSourceTask",
        "RecordMetadata has no offset -- can't sync offsets for ",
        r"offsets for (?P<topic>[\w.-]+)\.$",
    ),
    _action(
        "offset_translate_skipped",
        "OffsetSyncStore",
        ": Skipped (",
        r"translateDownstream\((?P<group>.+),(?P<topic>[\w.-]+)-(?P<partition>\d+),-?\d+\): Skipped"
        r" \((?P<reason>.*)\)",
    ),
    _action(
        "group_sync_blocked",
        "MirrorCheckpointTask",
        "likely caused by consumers currently using this group in the target cluster",
        _GROUP,
    ),
    _action(
        "group_sync_failed",
        "MirrorCheckpointTask",
        "Unable to sync offsets for consumer group ",
        _GROUP,
    ),
    _action(
        "group_offset_negative",
        "MirrorCheckpointTask",
        "may has been reset to a negative offset",
        r"Group (?P<group>.+) offset for " + _PARTITION,
    ),
    _action(
        "checkpoint_query_failed",
        "MirrorCheckpointTask",
        "Error querying offsets for consumer group ",
        _GROUP,
    ),
    _action(
        "checkpoint_query_failed",
        "MirrorCheckpointTask",
        "Failure polling consumer state for checkpoints",
    ),
    _action(
        "partitions_changed",
        "MirrorSourceConnector",
        " new topic-partitions on ",
        r"Found (?P<new>\d+) new topic-partitions on .+\. Found (?P<deleted>\d+) deleted "
        r"topic-partitions on .+\. Found (?P<missing>\d+) topic-partitions missing on ",
    ),
    _action("topic_created", "MirrorSourceConnector", "Created remote topic ", _TOPIC),
    _action("topic_create_failed", "MirrorSourceConnector", "Could not create topic ", _TOPIC),
    _action(
        "partitions_increased",
        "MirrorSourceConnector",
        "Increased size of ",
        r"size of (?P<topic>[\w.-]+) to (?P<partitions>\d+) partitions",
    ),
    _action(
        "partitions_create_failed",
        "MirrorSourceConnector",
        "Could not create topic-partitions for ",
        r"for (?P<topic>[\w.-]+)\.$",
    ),
    # Kafka logs this also after success.
    _action(
        "config_sync_failed",
        "MirrorSourceConnector",
        "Could not alter configuration of topic ",
        _TOPIC,
        needs_error=True,
    ),
    _action("acl_sync_failed", "MirrorSourceConnector", "Could not sync ACL of topic ", _TOPIC),
    _action(
        "groups_changed",
        "MirrorCheckpointConnector",
        " consumer groups for ",
        r"Found (?P<groups>\d+) consumer groups for .+?\. (?P<new>\d+) are new\."
        r" (?P<removed>\d+) were removed",
    ),
    _action(
        "scheduler_slow",
        "Scheduler",
        " took too long (",
        rf"\((?P<elapsed_ms>\d+) ms\) {_SCHEDULED}",
    ),
    _action("scheduler_failed", "Scheduler", " timed out running task: ", _SCHEDULED),
    _action(
        "scheduler_failed",
        "Scheduler",
        " caught exception in scheduled task: ",
        r"scheduled task: (?P<job>.+)",
    ),
    _action("worker_rebalance", "WorkerCoordinator", "Rebalance started"),
    _action(
        "worker_joined",
        "DistributedHerder",
        "Joined group at generation ",
        r"generation (?P<generation>\d+)",
    ),
    _action("worker_lost_coordinator", "WorkerCoordinator", "Broker coordinator was unreachable"),
    _action("reconfig_failed", "DistributedHerder", " failed unexpectedly"),
    _action("reconfig_failed", "DistributedHerder", "Failed to reconfigure connector's tasks"),
    _action("worker_dead", "DistributedHerder", "Uncaught exception in herder work thread"),
    _action(
        "auth_failed",
        "NetworkClient",
        " failed authentication due to",
        r"node (?P<node>-?\d+) \((?P<address>[^)]*)\)",
    ),
    _action("auth_failed", "FetchCollector ConsumerCoordinator MirrorUtils", "Not authorized"),
    _action(
        "broker_unreachable",
        "NetworkClient",
        " could not be established. Node may not be available",
        r"node (?P<node>-?\d+) \((?P<address>[^)]*)\)",
    ),
    _action(
        "source_truncation", "SubscriptionState", "Truncation detected for partition ", _PARTITION
    ),
    _action("offset_reset", "SubscriptionState", "Resetting offset for partition ", _PARTITION),
    _action("process_starting", "MirrorMaker", "Kafka MirrorMaker starting"),
    _action("process_started", "MirrorMaker", "Kafka MirrorMaker started"),
    _action("process_stopped", "MirrorMaker", "Kafka MirrorMaker stopped"),
    _action("shutdown_timeout", "MirrorMaker", "Timed out in shutdown hook"),
)


_TEXTS: Final = frozenset(("topic", "group", "reason", "job", "node", "address"))


def classify(logger: str, message: str, *, has_error: bool) -> tuple[str, dict[str, object]]:
    """Return the action of a message and its details; an empty string if it has none."""
    for action in _actions_of(logger[-200:]):
        if action.anchor in message and (has_error or not action.needs_error):
            found = action.details.search(message) if action.details else None
            if found is None:
                return action.name, {}
            values = found.groupdict().items()
            return action.name, {
                name: value if name in _TEXTS else int(value) for name, value in values
            }
    return "", {}


@lru_cache(maxsize=4096)
def _actions_of(logger: str) -> tuple[EventAction, ...]:
    name = logger.rpartition(".")[2].partition("$")[0]
    return tuple(each for each in EVENT_ACTIONS if name in each.loggers.split())
