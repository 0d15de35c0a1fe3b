"""Where the flow back starts, so that it copies only what was written since the consumers moved.

After a failover over `us->eu`, a topic of `eu` holds copies of what `us` still has, then what
producers wrote there since. MirrorMaker 2 knows nothing of that: the flow `eu->us` copies from its
last position, or everything, and each copy of a copy is a duplicate. With the identity policy its
positions have to be set to the ends of the copies; with the default policy copies never return.

Invariants:
A. A start is not above the first record that was not copied by the flow: nothing is left out. Where
   that record is not known exactly, the start is below it, and `again` says by how much at most.
B. Without evidence there is no start: it is not guessed.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from mm2slo_core.config.exporter_settings import FlowSettings
from mm2slo_core.cutover.cutover_plan import (
    STRIMZI_NOTE,
    MirrorForm,
    PlanStep,
    connect_url,
    connector_command,
)
from mm2slo_core.offset_translation import SyncLike
from mm2slo_core.records.connect_records import SourceOffset
from mm2slo_core.topic_selection import (
    TopicRole,
    connect_offsets_topic,
    replicated_topics,
    replication_policy,
)
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_core.user_errors import UserError


class CopiedTopics(NamedTuple):
    """Topics on the target of a flow that consumers have moved along."""

    returning: Mapping[str, str]
    """Copies that the flow back copies to where they are from: their original names by name."""
    never: Collection[str]
    """Copies that it does not copy, by its policy or its filter."""
    own: Collection[str]
    """Topics that are no copies: it copies them as any flow does."""


def sort_topics(flow: FlowSettings, back: FlowSettings, there: Collection[str]) -> CopiedTopics:
    """Sort the topics *there*, on the target of *flow*. The source is not needed."""
    policy = replication_policy(flow)
    originals = {
        policy.upstream_topic(topic) or topic: topic
        for topic in there
        if policy.topic_source(topic) == flow.flow.source and not policy.is_internal_topic(topic)
    }
    data = {TopicRole.DATA, TopicRole.UNSELECTED}
    copied = [each for each in replicated_topics(flow, originals) if each.role in data]
    copies = {originals[each.source]: each.source for each in copied}
    selected = {
        each.source: each.target for each in replicated_topics(back, there) if each.role in data
    }
    returning = {name: copy for name, copy in copies.items() if selected.get(name) == copy}
    own = selected.keys() - copies.keys()
    return CopiedTopics(returning, sorted(copies.keys() - returning.keys()), sorted(own))


class RecordedPartition(NamedTuple):
    """A partition when the consumers moved."""

    end: int | None
    """None if it was not read, or others had written to it already."""
    source_end: int | None = None
    proved: bool = False
    """Whether its newest record was certainly a copy; else users state that by recording it."""


class RecordedTopic(NamedTuple):
    topic_id: str | None
    source_id: str | None
    partitions: Sequence[RecordedPartition]


@dataclass(frozen=True, slots=True)
class RecordedEnds:
    """The ends of the copies when the consumers moved: before anything else wrote to them."""

    flow: str
    recorded_at: float
    """Epoch seconds."""
    topics: Mapping[str, RecordedTopic]


class StartBasis(StrEnum):
    """What a start is derived from."""

    RECORDED = "recorded"
    """The end when the consumers moved."""
    SYNC = "sync"
    """The newest offset sync before the consumers moved: below the first new record."""
    NEW = "new"
    """The source never had a record, or the topic was created since: all records are new."""
    RETURNED = "returned"
    """The flow back has copied beyond the start already: its position stays."""


@dataclass(frozen=True, slots=True)
class CopyFacts:
    """What is known of a partition of a copy, on the cluster that returns its records."""

    log_start: int
    end: int
    sync: SyncLike | None = None
    """The newest offset sync of the flow that the consumers have moved along."""
    source_end: int | None = None
    """The end of its source, 0 for a partition that does not exist; None if it is not known."""
    dense: bool = True
    """Whether each of its offsets since the sync has a record of this flow or a new one: no markers
    of transactions, no other flow that writes to it."""
    committed: int | None = None
    """The last source offset that the flow has committed."""
    recorded: RecordedPartition | None = None
    is_new: bool = False
    """Created since the consumers moved."""
    source_is_new: bool = False
    moved_sync: SyncLike | None = None
    """The newest sync before the consumers moved, if their ends were not recorded."""
    position: int | None = None
    """The next offset that the flow back would copy."""

    @property
    def copied_end(self) -> int | None:
        """The highest end that copies alone can have; None if it is not known.

        Since the sync each copy is one source record: `estimate_position` has the reason.
        """
        if self.source_end == 0:
            return 0
        if self.sync is None or self.source_end is None or not self.dense:
            return None
        return self.sync.downstream + max(self.source_end - self.sync.upstream, 1)

    @property
    def is_written(self) -> bool:
        """Whether records were certainly written that are no copies."""
        return self.copied_end is not None and self.end > self.copied_end

    @property
    def is_proved(self) -> bool:
        """Whether the newest record is certainly a copy: that of the sync, or of the commit."""
        if self.sync is None or not self.dense:
            return self.end == 0
        last = max(self.sync.upstream, -1 if self.committed is None else self.committed)
        return self.end == self.sync.downstream + last - self.sync.upstream + 1


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """The first offset to copy back, None if it is not known: *problem* has the reason."""

    partition: TopicPartition
    start: int | None
    basis: StartBasis | None = None
    proved: bool = True
    """Whether it is certain that nothing else had been written when its end was recorded."""
    again: int = 0
    """Copies that are copied back at most: duplicates."""
    uncopied: int = 0
    """Offsets of the source that the flow had not copied when the consumers moved, at most."""
    returning: int = 0
    """Offsets from the start to the present end."""
    gone: int = 0
    """Offsets from the start that retention has removed: they never return."""
    unplanned: int = 0
    """Copies that would be copied back from the present position: duplicates."""
    problem: str = ""


def plan_start(partition: TopicPartition, facts: CopyFacts) -> PlannedStart:
    """The start of one partition (invariants A and B)."""
    recorded = facts.recorded
    if facts.is_new or facts.source_end == 0:
        start, basis = 0, StartBasis.NEW
    elif recorded is not None and recorded.end is not None:
        start, basis = recorded.end, StartBasis.RECORDED
    elif facts.moved_sync is not None:
        start, basis = facts.moved_sync.downstream + 1, StartBasis.SYNC
    else:
        why = "its end was not recorded, and no offset sync is from before the consumers moved"
        return PlannedStart(partition, None, problem=why)
    if basis is not StartBasis.NEW and (problem := _contradiction(facts, start)):
        return PlannedStart(partition, None, problem=problem)
    resumed = max(facts.log_start if facts.position is None else facts.position, facts.log_start)
    first = max(start, facts.log_start)
    returns = PlannedStart(partition, first, basis, returning=facts.end - first, gone=first - start)
    if basis is StartBasis.NEW:  # what the flow may have copied since is copied back
        copied = facts.end if facts.copied_end is None else min(facts.end, facts.copied_end)
        return replace(returns, again=max(copied - first, 0))
    if facts.position is not None and start < facts.position <= facts.end:
        left = facts.end - resumed
        return PlannedStart(partition, resumed, StartBasis.RETURNED, returning=left)
    copied = facts.sync.downstream + 1 if facts.sync else start
    if facts.copied_end is not None:
        copied = max(copied, min(facts.end, facts.copied_end))
    elif basis is StartBasis.SYNC:
        copied = facts.end
    uncopied = (facts.copied_end or 0) - start if basis is StartBasis.RECORDED else 0
    return replace(
        returns,
        proved=recorded is not None and recorded.proved,
        again=max(copied - first, 0),
        uncopied=max(uncopied, 0),
        unplanned=max(start - resumed, 0),
    )


def _contradiction(facts: CopyFacts, start: int) -> str:
    """Why a start cannot be right: one of the logs is not the one that it was found in."""
    known = facts.sync.downstream + 1 if facts.sync else 0
    if max(start, known) > facts.end:
        return f"it ends at {facts.end}, below {max(start, known)}: truncated or created again"
    if facts.source_end is None:
        return "the end of its source was not read"
    before = facts.recorded.source_end if facts.recorded else None
    least = max(before or 0, facts.sync.upstream + 1 if facts.sync else 0)
    if facts.source_is_new or facts.source_end < least:
        return (
            f"its source ends at {facts.source_end}, and was at {least} or beyond: records that it "
            "has lost are only here"
        )
    return ""


def reversed_settings(flow: FlowSettings) -> FlowSettings:
    """The flow back with the same settings, for a configuration that does not have it.

    Raises UserError if its connectors are named in a way that does not show theirs.
    """
    back, label = flow.flow.reverse, flow.label
    if flow.connect.offsets_topic and label not in flow.connect.source_connector:
        raise UserError(
            f"{back.label} is not configured, and {flow.connect.source_connector!r} does not show "
            "the name of its connector: add the flow with its names in connect"
        )
    names = {
        name: getattr(flow.connect, name).replace(label, back.label)
        for name in ("source_connector", "checkpoint_connector", "heartbeat_connector")
    }
    return flow.changed({"flow": back, "connect": flow.connect.changed(names)})


def alter_offsets(back: Flow, starts: Collection[PlannedStart]) -> dict[str, object]:
    """The body of `PATCH /connectors/{name}/offsets` (KIP-875, Kafka 3.6).

    MirrorMaker 2 resumes after the offset that is set. Null, for a start at 0, removes a position.
    """
    offsets = [
        {
            "partition": {
                "cluster": back.source,
                "partition": each.partition.partition,
                "topic": each.partition.topic,
            },
            "offset": {"offset": each.start - 1} if each.start else None,
        }
        for each in _to_set(starts)
    ]
    return {"offsets": offsets}


def strimzi_config_map(connector: str, body: Mapping[str, object], name: str) -> str:
    """The ConfigMap that `alterOffsets` of Strimzi reads, as JSON, which is YAML too."""
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {f"{connector.replace('->', '--')}.json": json.dumps(body)},
    }
    return json.dumps(manifest, indent=2) + "\n"


NULL_MARKER = "NULL"


def offset_records(connector: str, back: Flow, starts: Collection[PlannedStart]) -> Iterator[str]:
    """Keys and values of the records for the offsets topic, divided by tabs.

    Connect finds only keys that are equal byte for byte, as `SourceOffset` writes them.
    """
    for each in _to_set(starts):
        record = SourceOffset(connector, back.source, each.partition, max(each.start - 1, 0))
        value = record.encode_value().decode() if each.start else NULL_MARKER
        yield f"{record.encode_key().decode()}\t{value}\n"


class _Position(NamedTuple):
    partition: TopicPartition
    start: int


def _to_set(starts: Collection[PlannedStart]) -> Iterator[_Position]:
    """Not those that are further already: the flow back may be running."""
    for each in starts:
        if each.start is not None and each.basis is not StartBasis.RETURNED:
            yield _Position(each.partition, each.start)


def failback_steps(
    flow: FlowSettings,
    back: FlowSettings,
    form: MirrorForm,
    *,
    servers: str,
    has_offsets_topic: bool,
    file: str,
) -> Iterator[PlanStep]:
    """The steps that set the starts; *servers*: of the target of *back*; *file* has the starts."""
    name = back.connect.source_connector
    named = shlex.quote(file)
    notes = ["With the identity policy both at a time copy each record in a circle."]
    if form is MirrorForm.DEDICATED:
        # Its herder resumes the stored connector before it stores the new settings.
        notes.append(
            f"Do this before {back.label} starts, not with it: after a restart MirrorMaker 2 runs "
            "a flow with its former settings for a moment, also one that is now disabled."
        )
    yield PlanStep(
        f"Stop {flow.label}, and let it stay stopped while {back.label} runs",
        tuple(connector_command(flow, form, "stop")),
        tuple(notes),
    )
    start = list(connector_command(back, form, "resume"))
    match form:
        case MirrorForm.CONNECT:
            yield PlanStep(
                f"Create {name} with initial_state STOPPED (Kafka 3.7), or stop it",
                tuple(connector_command(back, form, "stop")),
            )
            path = f"{connect_url(back, name)}/offsets"
            # Stopping goes on in the background: until then the worker refuses the request.
            patch = (
                "curl --fail-with-body --retry 10 --retry-all-errors -X PATCH "
                f"-H 'Content-Type: application/json' --data @{named} {path}"
            )
            yield PlanStep(
                f"Set its positions, and only then start {back.label}",
                (" && ".join([patch, *start]),),
            )
        case MirrorForm.STRIMZI:
            resource = f"kafkamirrormaker2 NAME-{back.flow.target}"
            yield PlanStep(
                f"Create the mirror {back.label} with state: stopped, or stop it",
                tuple(connector_command(back, form, "stop")),
                (STRIMZI_NOTE,),
            )
            reference = (
                "[{op: add, path: /spec/mirrors/0/sourceConnector/alterOffsets, "
                "value: {fromConfigMap: {name: failback-offsets}}}]"
            )
            pending = r"jsonpath='{.metadata.annotations.strimzi\.io/connector-offsets}'"
            yield PlanStep(
                "Set its positions (Strimzi 0.44), and wait until the operator has",
                (
                    f"kubectl apply --server-side -f {named}",
                    f"kubectl patch {resource} --type json -p '{reference}'",
                    f"kubectl annotate {resource} strimzi.io/connector-offsets=alter "
                    f"strimzi.io/mirrormaker-connector='{name}'",
                    f'until [ -z "$(kubectl get {resource} -o {pending})" ]; do sleep 5; done',
                ),
                ("The operator removes the annotation when it has set them.",),
            )
            yield PlanStep(f"Start {back.label}", tuple(start))
        case MirrorForm.DEDICATED:
            topic = connect_offsets_topic(back)
            create = (
                f"kafka-topics.sh --bootstrap-server {servers} --create --topic {topic} "
                "--partitions 25 --replication-factor 3 --config cleanup.policy=compact"
            )
            yield PlanStep(
                "Stop MirrorMaker 2, all of its processes, and write the positions",
                (
                    *(() if has_offsets_topic else (create,)),
                    f"kafka-console-producer.sh --bootstrap-server {servers} --topic {topic} "
                    f"--property parse.key=true --property null.marker={NULL_MARKER} < {named}",
                ),
                ("A running process would not read them, and would overwrite them.",),
            )
            yield PlanStep(f"Start {back.label}", tuple(start))
