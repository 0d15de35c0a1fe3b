"""The connectors that a configuration topic of Connect (`mm2-configs`) contains."""

from collections import defaultdict
from collections.abc import Collection, Container, Mapping
from itertools import chain

from mm2slo_core.offset_translation import TransactionalCommits
from mm2slo_core.records.connect_records import (
    ConnectorConfig,
    TaskAssignment,
    TaskFencing,
    decode_config,
)
from mm2slo_core.records.mirror_records import Tombstone
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.tailed_topic import TailRecord


class ConnectorConfigs:
    """Settings, assignments and fencing of connectors, built record by record."""

    def __init__(self, only: Container[str] | None = None) -> None:
        """*only*: names of connectors; None: all."""
        self._only = only
        self.by_name: dict[str, ConnectorConfig] = {}
        self.fenced: set[str] = set()
        """Those whose tasks a worker with exactly-once support has fenced at some time."""
        self.assignments: defaultdict[str, dict[int, tuple[TopicPartition, ...]]] = defaultdict(
            dict
        )
        """Partitions by connector and task."""
        self._tasks: tuple[str, dict[TopicPartition, int]] | None = None
        """Tasks of one connector by partition; None after a change."""
        self._assigned: tuple[object, frozenset[TopicPartition]] | None = None
        """Those of the tasks asked for last; None after a change."""

    def apply(self, record: TailRecord) -> None:
        """Take a record. Raises DecodeError."""
        decoded = decode_config(record.key, record.value)
        if decoded is None:
            return
        connector = decoded.key.connector if isinstance(decoded, Tombstone) else decoded.connector
        if self._only is not None and connector not in self._only:
            return
        if isinstance(decoded, ConnectorConfig):
            self.by_name[connector] = decoded
        elif isinstance(decoded, TaskFencing):
            self.fenced.add(connector)
        elif isinstance(decoded, TaskAssignment):
            self.assignments[connector][decoded.task] = decoded.partitions
            self._assigned = self._tasks = None
        elif decoded.key.task is None:
            self.by_name.pop(connector, None)
        else:
            self.assignments[connector].pop(decoded.key.task, None)
            self._assigned = self._tasks = None

    def clear(self) -> None:
        """Drop everything but fencing, which is a hint that stays."""
        self.by_name.clear()
        self.assignments.clear()
        self._assigned = self._tasks = None

    def task_of(self, connector: str, partition: TopicPartition) -> int | None:
        """The task that *partition* is assigned to; None if it is not known."""
        if self._tasks is None or self._tasks[0] != connector:
            assignments = self.assignments.get(connector, {})
            # Removed tasks, whose configurations stay, have the highest numbers.
            tasks = {
                each: task
                for task in sorted(assignments, reverse=True)
                for each in assignments[task]
            }
            self._tasks = connector, tasks
        return self._tasks[1].get(partition)

    def is_transactional(self, connector: str, commits: TransactionalCommits) -> bool:
        """Whether the worker of *connector* has exactly-once support, by its *commits*.

        Fenced tasks are a hint only: the record remains when it is switched off.
        """
        return connector in self.fenced and commits.found is True

    def existing(
        self, connector: str, tasks: Collection[int | None]
    ) -> Mapping[int, tuple[TopicPartition, ...]] | None:
        """Partitions by task, of *tasks*, of all if none is known; None without assignments.

        Configurations of removed tasks stay in the topic.
        """
        found = self.assignments.get(connector)
        if not found:
            return None
        return {task: found[task] for task in sorted(found) if task in tasks or not tasks}

    def assigned(
        self, connector: str, tasks: Collection[int | None]
    ) -> frozenset[TopicPartition] | None:
        """All partitions of `existing`."""
        existing = self.existing(connector, tasks)
        if existing is None:
            return None
        if self._assigned is None or self._assigned[0] != (connector, tasks):
            partitions = chain.from_iterable(existing.values())
            self._assigned = (connector, tasks), frozenset(partitions)
        return self._assigned[1]
