"""`mm2slo failback record|plan`: the way back after a failover, without a record twice.

Both commands read the clusters and write nothing to them; the plan is a file and commands.
"""

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import TypeAdapter, ValidationError
from rich.console import Console

from mm2slo_audit.scope.cluster_readings import ClusterClients, open_clients
from mm2slo_audit.scope.flow_topic_reader import read_commits, read_syncs
from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource, config_options
from mm2slo_cli.cutover import FormOption, mirror_form, print_steps
from mm2slo_cli.main import new_app
from mm2slo_cli.option_values import parse_flow
from mm2slo_core.audit.confidence_bounds import plural
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.exporter_settings import FlowSettings
from mm2slo_core.cutover.cutover_plan import MirrorForm
from mm2slo_core.cutover.failback_plan import (
    CopiedTopics,
    CopyFacts,
    PlannedStart,
    RecordedEnds,
    RecordedTopic,
    StartBasis,
    alter_offsets,
    failback_steps,
    offset_records,
    plan_start,
    reversed_settings,
    sort_topics,
    strimzi_config_map,
)
from mm2slo_core.offset_translation import SyncLike
from mm2slo_core.replication_policy import internal_topics
from mm2slo_core.topic_selection import replication_policy
from mm2slo_core.topology import TopicPartition
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError

failback_app = new_app(no_args_is_help=True)
_SHOWN: Final = 10
_RECORDED: Final = TypeAdapter(RecordedEnds)

_MovedFlow = Annotated[
    str, typer.Option("--flow", metavar="FLOW", help="That the consumers moved along: 'us->eu'.")
]


@failback_app.callback()
def _group() -> None:
    """Return after a failover: where the flow back starts, so that it copies nothing twice."""


@failback_app.command("record", no_args_is_help=True)
@config_options()
def record(
    source: ConfigSource,
    *,
    flow: _MovedFlow,
    out: Annotated[Path, typer.Option(metavar="FILE", help="New file for the ends.")],
) -> None:
    """Record where the copies end, before producers write to the target.

    Once the flow is stopped, in each failover: then the way back is exact.
    The source may be away. For example:
    mm2slo failback record --config mm2slo.yaml --flow 'us->eu' --out ends.json
    """
    if out.exists():
        raise UserError(
            f"{str(out)!r} exists: expected a new file, since ends cannot be read later"
        )
    with _opened(source, flow) as reader:
        topics = reader.topics()
        copies = reader.copies([*topics.returning, *topics.never])
    written = [str(partition) for partition, facts in copies.items() if facts.is_written]
    ends: dict[str, list[int | None]] = {}
    for partition, facts in copies.items():
        ends.setdefault(partition.topic, []).append(None if facts.is_written else facts.end)
    recorded = {name: RecordedTopic(reader.ids.get(name), found) for name, found in ends.items()}
    found = RecordedEnds(reader.flow.label, round(time.time(), 3), recorded)
    try:
        out.write_bytes(_RECORDED.dump_json(found, indent=2) + b"\n")
    except OSError as error:
        raise UserError(f"cannot write {str(out)!r}: {error.strerror}") from None
    console = _console()
    counted = f"{plural(len(copies), 'partition')} of {plural(len(ends), 'topic')}"
    console.print(f"{reader.flow.label}: the ends of {counted} are in {out}")
    for each in (*reader.problems, *_named("written to already, not recorded", written)):
        console.print(f"  {each}")


@failback_app.command("plan", no_args_is_help=True)
@config_options()
def plan(
    source: ConfigSource,
    *,
    flow: _MovedFlow,
    out: Annotated[Path, typer.Option(metavar="FILE", help="File for the positions.")],
    ends: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="What `failback record` wrote. [default: offset syncs, as bounds]"
        ),
    ] = None,
    form: FormOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Plan the flow back: its start offsets, and the commands that set them.

    Only what was written since the consumers moved returns. Exits with 1 if a
    start is not known. Runs none of the commands. For example:
    mm2slo failback plan --config mm2slo.yaml --flow 'us->eu' --ends ends.json
    --out positions.json
    """
    recorded = _read_ends(ends) if ends else None
    with _opened(source, flow) as reader:
        if recorded and recorded.flow != reader.flow.label:
            raise UserError(f"{str(ends)!r} is of {recorded.flow}: expected {reader.flow.label}")
        topics = reader.topics()
        positions = reader.positions(topics.returning)
        copies = reader.copies(topics.returning, recorded, positions)
        offsets_topic = reader.offsets_topic()
    starts = [plan_start(partition, facts) for partition, facts in copies.items()]
    used = form or mirror_form(reader.config, source, reader.flow)
    back = reader.back
    name = back.connect.source_connector
    body = alter_offsets(back.flow, starts)
    text = {
        MirrorForm.CONNECT: lambda: json.dumps(body, indent=1) + "\n",
        MirrorForm.STRIMZI: lambda: strimzi_config_map(name, body, "failback-offsets"),
        MirrorForm.DEDICATED: lambda: "".join(offset_records(name, back.flow, starts)),
    }[used]()
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {str(out)!r}: {error.strerror}") from None
    console = _console()
    if as_json:
        console.print(_document(back, topics, starts, reader.problems))
    else:
        for line in _summary(back, topics, starts, reader.problems):
            console.print(line)
        servers = reader.config.clusters[back.flow.target].bootstrap_servers
        steps = failback_steps(
            reader.flow, back, used, servers=servers, offsets_topic=offsets_topic, file=str(out)
        )
        print_steps(console, steps if topics.returning else ())
    raise typer.Exit(any(each.start is None for each in starts))


class _Reader:
    """What both clusters of a flow say about its copies; a source that is away is a problem."""

    def __init__(self, config: Config, flow: FlowSettings, clients: ClusterClients) -> None:
        self.config = config
        self.flow = flow
        configured = {each.flow: each for each in config.as_settings().flows}
        self.back = configured.get(flow.flow.reverse) or reversed_settings(flow)
        self.problems: list[str] = []
        if flow.flow.reverse not in configured:
            self.problems.append(
                f"{self.back.label} is not configured: taken to be as {flow.label} is"
            )
        if flow.transforms:
            self.problems.append(
                f"{flow.label} has transforms: copies that they rename are not found"
            )
        self._clients = clients
        self.ids: dict[str, str | None] = {}
        self._partitions: Mapping[str, int] = {}

    @property
    def _there(self) -> ClusterClient:
        return self._clients[self.flow.flow.target]

    def topics(self) -> CopiedTopics:
        """The topics where the consumers are. Raises KafkaOperationError."""
        listing = self._there.topics()
        self._partitions = listing.partition_counts
        topics = sort_topics(self.flow, self.back, self._partitions.keys())
        identities, _ = self._there.identify([*topics.returning, *topics.never])
        self.ids = {name: each.topic_id for name, each in identities.items()}
        return topics

    def positions(self, topics: Collection[str]) -> Mapping[TopicPartition, int]:
        """The next offsets that the flow back would copy, where it has a position."""
        found = read_commits(self.back, self._clients, topics)
        return {partition: commit.offset + 1 for partition, commit in found.items()}

    def offsets_topic(self) -> str | None:
        """Where the positions of the flow back are; None if the topic does not exist."""
        usual = internal_topics(self.back.flow, replication_policy(self.back)).connect_offsets
        topic = self.back.connect.offsets_topic or usual.topic
        return topic if self._clients[self.back.flow.target].topic_exists(topic) else None

    def copies(
        self,
        names: Iterable[str],
        recorded: RecordedEnds | None = None,
        positions: Mapping[TopicPartition, int] | None = None,
    ) -> Mapping[TopicPartition, CopyFacts]:
        """The facts of all partitions of the copies *names*. Raises KafkaOperationError."""
        copies = [
            TopicPartition(name, number)
            for name in sorted(names)
            for number in range(self._partitions[name])
        ]
        starts, ends = self._there.start_offsets(copies), self._there.end_offsets(copies)
        for reading in (starts, ends):
            for partition, error in reading.errors.items():
                raise UserError(f"{partition} on {self._there.alias} cannot be read: {error.value}")
        policy = replication_policy(self.flow)
        origins = {
            each: TopicPartition(policy.upstream_topic(each.topic) or each.topic, each.partition)
            for each in copies
        }
        syncs, source_ends = self._of_source({each.topic for each in origins.values()}, origins)
        return {
            each: CopyFacts(
                starts.offsets[each],
                ends.offsets[each],
                syncs.get(origins[each]),
                source_ends.get(origins[each]),
                self._recorded_end(recorded, each),
                (positions or {}).get(each),
            )
            for each in copies
        }

    def _of_source(
        self, topics: Collection[str], origins: Mapping[TopicPartition, TopicPartition]
    ) -> tuple[Mapping[TopicPartition, SyncLike], Mapping[TopicPartition, int]]:
        """The newest syncs and the source's ends, by source partition."""
        try:
            syncs = read_syncs(self.flow, self._clients, topics)
            source = self._clients[self.flow.flow.source]
            counts = source.topics().partition_counts
            wanted = [each for each in origins.values() if each.partition < counts.get(each[0], 0)]
            # Markers on the target take offsets, so that ends are no counts of records there.
            read = {} if self.flow.exactly_once else source.end_offsets(wanted).offsets
            missing = set(origins.values()).difference(wanted)
            ends = dict.fromkeys(missing, 0) | read
        except (KafkaOperationError, TimeoutError) as error:
            self.problems.append(f"offset syncs and ends of the source were not read: {error}")
            return {}, {}
        return {each: found.points[-1] for each, found in syncs.items()}, ends

    def _recorded_end(self, recorded: RecordedEnds | None, partition: TopicPartition) -> int | None:
        if recorded is None:
            return None
        topic = recorded.topics.get(partition.topic)
        is_same = topic is not None and topic.topic_id == self.ids.get(partition.topic)
        if topic is None or not is_same or partition.partition >= len(topic.ends):
            return 0  # created since, when the flow was stopped: all its records are new
        return topic.ends[partition.partition]


@contextmanager
def _opened(source: ConfigSource, flow: str) -> Iterator[_Reader]:
    config = read_config(source)
    (moved,) = config.as_settings().select([parse_flow(flow).label])
    with open_clients(config) as clients:
        try:
            yield _Reader(config, moved, clients)
        except (KafkaOperationError, TimeoutError) as error:
            raise UserError(f"{error}; mm2slo check --connect shows why") from None


def _read_ends(file: Path) -> RecordedEnds:
    try:
        return _RECORDED.validate_json(file.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {str(file)!r}: {error.strerror}") from None
    except ValidationError:
        raise UserError(
            f"{str(file)!r} has no recorded ends; expected the file of mm2slo failback record"
        ) from None


def _console() -> Console:
    return Console(soft_wrap=True, highlight=False, markup=False)


def _named(what: str, names: Collection[str]) -> Iterator[str]:
    if names:
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        yield f"{what}: {', '.join(islice(names, _SHOWN))}{more}"


def _summary(
    back: FlowSettings,
    topics: CopiedTopics,
    starts: Sequence[PlannedStart],
    problems: Sequence[str],
) -> Iterator[str]:
    known = [each for each in starts if each.start is not None]
    yield f"{back.label}: {plural(len(known), 'start')} for {plural(len(starts), 'partition')}"
    exact = sum(each.basis is StartBasis.RECORDED for each in known)
    if known:
        yield f"  exact, from recorded ends: {exact:,}; from offset syncs: {len(known) - exact:,}"
        yield f"  returning so far: {plural(sum(each.returning for each in known), 'record')}"
        yield f"  duplicates with this plan: at most {sum(each.again for each in known):,}"
        yield f"  duplicates without it: {sum(each.unplanned for each in known):,}"
    gone = [f"{each.partition} ({each.gone:,})" for each in known if each.gone]
    unknown = [f"{each.partition} ({each.problem})" for each in starts if each.start is None]
    yield from (f"  {line}" for line in _named("removed by retention, never returns", gone))
    yield from (f"  {line}" for line in _named("no start, so everything returns", unknown))
    yield from (f"  {line}" for line in _named("never returns, by policy or filter", topics.never))
    yield from (f"  {line}" for line in _named("no copies, return as they are", topics.own))
    yield from (f"  {each}" for each in problems)


def _document(
    back: FlowSettings,
    topics: CopiedTopics,
    starts: Sequence[PlannedStart],
    problems: Sequence[str],
) -> str:
    document = {
        "flow": back.label,
        "connector": back.connect.source_connector,
        "starts": [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "start": each.start,
                "basis": each.basis,
                "duplicates_at_most": each.again,
                "returning": each.returning,
                "gone": each.gone,
                "duplicates_without_plan": each.unplanned,
                "problem": each.problem or None,
            }
            for each in starts
        ],
        "never_returning": list(topics.never),
        "own_topics": list(topics.own),
        "notes": list(problems),
    }
    return json.dumps(document, indent=2)
