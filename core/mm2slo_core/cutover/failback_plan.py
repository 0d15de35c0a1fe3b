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
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from mm2slo_core.config.exporter_settings import FlowSettings
from mm2slo_core.cutover.cutover_plan import MirrorForm, PlanStep, connect_url, connector_command
from mm2slo_core.offset_translation import SyncLike
from mm2slo_core.records.connect_records import SourceOffset
from mm2slo_core.topic_selection import TopicRole, replicated_topics, replication_policy
from mm2slo_core.topology import Flow, TopicPartition


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


class RecordedTopic(NamedTuple):
    """A topic when the consumers moved. *ends*: None where others had written to it already."""

    topic_id: str | None
    ends: Sequence[int | None]


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
    """The end when the consumers moved: exact."""
    SYNC = "sync"
    """The newest offset sync of the flow: below the first new record, by `again` at most."""


@dataclass(frozen=True, slots=True)
class CopyFacts:
    """What is known of a partition of a copy, on the cluster that returns its records."""

    log_start: int
    end: int
    sync: SyncLike | None = None
    """The newest offset sync of the flow that the consumers have moved along."""
    source_end: int | None = None
    """The end of its source; None if it is not known."""
    recorded: int | None = None
    position: int | None = None
    """The next offset that the flow back would copy."""

    @property
    def copied_end(self) -> int | None:
        """The highest end that copies alone can have; None if it is not known.

        Since the sync each copy is one source record: `estimate_position` has the reason. Markers
        of transactions on the target add to that, so exactly-once flows need recorded ends.
        """
        if self.sync is None or self.source_end is None:
            return None
        return self.sync.downstream + max(self.source_end - self.sync.upstream, 1)

    @property
    def is_written(self) -> bool:
        """Whether records were certainly written that are no copies."""
        return self.copied_end is not None and self.end > self.copied_end


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """The first offset to copy back, None if it is not known: *problem* has the reason."""

    partition: TopicPartition
    start: int | None
    basis: StartBasis | None = None
    again: int = 0
    """Copies that are copied back at most: duplicates."""
    returning: int = 0
    """Offsets from the start to the present end."""
    gone: int = 0
    """Offsets from the start that retention has removed: they never return."""
    unplanned: int = 0
    """Copies that would be copied back from the present position: duplicates."""
    problem: str = ""


def plan_start(partition: TopicPartition, facts: CopyFacts) -> PlannedStart:
    """The start of one partition (invariants A and B)."""
    start, basis, again, problem = facts.recorded, StartBasis.RECORDED, 0, ""
    known = facts.sync.downstream + 1 if facts.sync else 0
    if start is None:
        basis = StartBasis.SYNC
        if facts.sync is None and facts.source_end != 0:
            problem = "neither its end was recorded nor has it an offset sync"
        else:
            start = known  # 0 if the source never had a record
            highest = facts.end if facts.copied_end is None else min(facts.end, facts.copied_end)
            again = max(highest - start, 0) if facts.sync else 0
    elif known > start:
        again = known - start  # copied on after its end was recorded
    if start is not None and max(start, known) > facts.end:
        problem = f"it ends at {facts.end}, below {max(start, known)}: truncated or created again"
    if start is None or problem:
        return PlannedStart(partition, None, problem=problem)
    first = max(start, facts.log_start)
    resumed = facts.log_start if facts.position is None else facts.position
    return PlannedStart(
        partition,
        start,
        basis,
        again=again,
        returning=facts.end - first,
        gone=first - start,
        unplanned=max(start - max(resumed, facts.log_start), 0),
    )


def reversed_settings(flow: FlowSettings) -> FlowSettings:
    """The flow back with the same settings, for a configuration that does not have it."""
    back, label = flow.flow.reverse, flow.label
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
        for each in starts
        if each.start is not None
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


def offset_records(connector: str, back: Flow, starts: Collection[PlannedStart]) -> Iterator[str]:
    """Keys and values of the records for the offsets topic, divided by tabs, without a start at 0.

    Connect finds only keys that are equal byte for byte, as `SourceOffset` writes them.
    """
    for each in starts:
        if each.start:
            record = SourceOffset(connector, back.source, each.partition, each.start - 1)
            yield f"{record.encode_key().decode()}\t{record.encode_value().decode()}\n"


def failback_steps(
    flow: FlowSettings,
    back: FlowSettings,
    form: MirrorForm,
    *,
    servers: str,
    offsets_topic: str | None,
    file: str,
) -> Iterator[PlanStep]:
    """The steps that set the starts; *servers*: of the target of *back*; *file* has the starts.

    *offsets_topic*: None if the topic does not exist.
    """
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
    match form:
        case MirrorForm.CONNECT:
            yield PlanStep(
                f"Create {name} with initial_state STOPPED (Kafka 3.7), or stop it",
                tuple(connector_command(back, form, "stop")),
            )
            path = f"{connect_url(back, name)}/offsets"
            # Stopping goes on in the background: until then the worker refuses the request.
            patch = "curl --retry 10 --retry-all-errors --fail-with-body -X PATCH"
            yield PlanStep(
                "Set its positions, and read them back",
                (
                    f"{patch} -H 'Content-Type: application/json' --data @{named} {path}",
                    f"curl {path}",
                ),
            )
        case MirrorForm.STRIMZI:
            yield PlanStep(
                f"Create the mirror {back.label} with state: stopped, or stop it",
                tuple(connector_command(back, form, "stop")),
                (f"0 is the place of {back.label} in spec.mirrors.",),
            )
            reference = (
                "[{op: add, path: /spec/mirrors/0/sourceConnector/alterOffsets, "
                "value: {fromConfigMap: {name: failback-offsets}}}]"
            )
            yield PlanStep(
                "Set its positions (Strimzi 0.44); the operator then removes the annotations",
                (
                    f"kubectl apply -f {named}",
                    f"kubectl patch kafkamirrormaker2 NAME --type json -p '{reference}'",
                    "kubectl annotate kafkamirrormaker2 NAME strimzi.io/connector-offsets=alter "
                    f"strimzi.io/mirrormaker-connector='{name}'",
                ),
            )
        case MirrorForm.DEDICATED:
            topic = offsets_topic or f"mm2-offsets.{back.flow.source}.internal"
            create = (
                f"kafka-topics.sh --bootstrap-server {servers} --create --topic {topic} "
                "--partitions 25 --replication-factor 3 --config cleanup.policy=compact"
            )
            yield PlanStep(
                "Stop MirrorMaker 2, all of its processes, and write the positions",
                (
                    *(() if offsets_topic else (create,)),
                    f"kafka-console-producer.sh --bootstrap-server {servers} --topic {topic} "
                    f"--property parse.key=true < {named}",
                ),
                ("A running process would not read them, and would overwrite them.",),
            )
    yield PlanStep(f"Start {back.label}", tuple(connector_command(back, form, "resume")))
