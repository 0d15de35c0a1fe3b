"""`mm2slo failback record|plan`: the way back after a failover, without a record twice.

Both commands read the clusters and write nothing to them; the plan is a file and commands.
"""

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer
from pydantic import TypeAdapter, ValidationError
from rich.console import Console

from mm2slo_audit.scope.cluster_readings import ClusterClients, open_clients
from mm2slo_audit.scope.flow_topic_reader import (
    commits_in_transactions,
    read_commits,
    read_connectors,
    read_syncs,
)
from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource, config_options
from mm2slo_cli.cutover import FormOption, mirror_form, print_steps
from mm2slo_cli.main import new_app
from mm2slo_cli.option_values import format_time, now_ms, parse_flow, parse_time
from mm2slo_core.audit.confidence_bounds import plural
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.exporter_settings import FlowSettings, PolicyKind
from mm2slo_core.cutover.cutover_plan import MirrorForm
from mm2slo_core.cutover.failback_plan import (
    CopiedTopics,
    CopyFacts,
    PlannedStart,
    RecordedEnds,
    RecordedPartition,
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
from mm2slo_core.topic_selection import (
    connect_configs_topic,
    connect_offsets_topic,
    replication_policy,
)
from mm2slo_core.topology import TopicPartition
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

failback_app = new_app(no_args_is_help=True)
_SHOWN: Final = 10
_MARGIN_SECONDS: Final = 60.0
"""Between a stated time and the clock that stamped an offset sync."""
_Found = TypeVar("_Found")
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
    partitions: dict[str, list[RecordedPartition]] = {}
    for partition, facts in copies.items():
        known = facts.end if not facts.is_written and partition not in reader.unread else None
        found = RecordedPartition(known, facts.source_end, facts.is_proved)
        partitions.setdefault(partition.topic, []).append(found)
    recorded = RecordedEnds(reader.flow.label, round(time.time(), 3), reader.recorded(partitions))
    _write(out, _RECORDED.dump_json(recorded, indent=1).decode() + "\n")
    console = _console()
    counted = f"{plural(len(copies), 'partition')} of {plural(len(partitions), 'topic')}"
    console.print(f"{reader.flow.label}: the ends of {counted} are in {out}")
    written = [str(each) for each, facts in copies.items() if facts.is_written]
    stated = [
        str(each) for each, facts in copies.items() if not (facts.is_proved or facts.is_written)
    ]
    unread = list(map(str, reader.unread))
    for each in (
        *reader.problems,
        *_named("others have written to already, not recorded", written),
        *_named("not read, not recorded", unread),
        *_named("not proved, so nothing but MirrorMaker 2 may have written there yet", stated),
    ):
        console.print(f"  {each}")
    raise typer.Exit(bool(written or unread))


@failback_app.command("plan", no_args_is_help=True)
@config_options()
def plan(
    source: ConfigSource,
    *,
    flow: _MovedFlow,
    out: Annotated[Path, typer.Option(metavar="FILE", help="File for the positions.")],
    ends: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What `failback record` wrote.")
    ] = None,
    moved_at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Without recorded ends: before producers wrote to the target (ISO 8601).",
        ),
    ] = None,
    form: FormOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Plan the flow back: its start offsets, and the commands that set them.

    Only what was written since the consumers moved returns. Exits with 1 if a
    start is not known. Runs none of the commands. Needs --ends, or --moved-at,
    with which offset syncs from before that time bound the starts. For example:
    mm2slo failback plan --config mm2slo.yaml --flow 'us->eu' --ends ends.json
    --out positions.json
    """
    if (ends is None) == (moved_at is None):
        raise UserError("expected either --ends or --moved-at: when did the consumers move?")
    if ends and out.absolute() == ends.absolute():
        raise UserError(f"--out {str(out)!r} has the recorded ends: expected another file")
    recorded = _read_ends(ends) if ends else None
    moved = parse_time("--moved-at", moved_at, now_ms()) / 1000 if moved_at else None
    with _opened(source, flow) as reader:
        if recorded and recorded.flow != reader.flow.label:
            raise UserError(f"{str(ends)!r} is of {recorded.flow}: expected {reader.flow.label}")
        topics = reader.topics()
        positions = reader.positions(topics.returning)
        copies = reader.copies(topics.returning, recorded, moved, positions)
        if reader.unread:
            raise UserError(f"partitions were not read: {', '.join(map(str, reader.unread))}")
        has_offsets_topic = reader.has_offsets_topic()
    if recorded:
        at = format_time(round(recorded.recorded_at) * 1000)
        reader.problems.insert(0, f"the ends are those of {at}")
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
    _write(out, text)
    console = _console()
    if as_json:
        console.print(_document(back, topics, starts, reader.problems))
    else:
        for line in _summary(reader, topics, starts):
            console.print(line)
        servers = reader.config.clusters[back.flow.target].bootstrap_servers
        steps = failback_steps(
            reader.flow,
            back,
            used,
            servers=servers,
            has_offsets_topic=has_offsets_topic,
            file=str(out),
        )
        print_steps(console, steps if topics.returning else ())
    raise typer.Exit(any(each.start is None for each in starts))


class _Reader:
    """What both clusters of a flow say about its copies.

    To record, the source may be away; a plan needs both: what is not known has no start.
    """

    def __init__(self, config: Config, flow: FlowSettings, clients: ClusterClients) -> None:
        if not flow.by_mirrormaker:
            raise UserError(f"{flow.label} runs on {flow.engine}: expected MirrorMaker 2")
        self.config = config
        self.flow = flow
        configured = {each.flow: each for each in config.as_settings().flows}
        self.back = configured.get(flow.flow.reverse) or reversed_settings(flow)
        self.problems: list[str] = []
        self.unread: list[TopicPartition] = []
        self.ids: dict[str, str | None] = {}
        self.source_ids: dict[str, str | None] = {}
        self._clients = clients
        self._there = clients[flow.flow.target]
        self._partitions: Mapping[str, int] = {}
        if flow.flow.reverse not in configured:
            self.problems.append(
                f"{self.back.label} is not configured: taken to be as {flow.label} is"
            )
        if flow.transforms:
            self.problems.append(
                f"{flow.label} has transforms: copies that they rename are not found"
            )
        self._others = [
            each.label
            for each in configured.values()
            if each.flow.target == flow.flow.target
            and each.flow != flow.flow
            and PolicyKind.IDENTITY in {each.policy.kind, flow.policy.kind}
        ]
        if self._others:
            self.problems.append(
                f"{', '.join(self._others)} may write to the same copies: what they write is not "
                f"distinguished from new records, and returns over {self.back.label}"
            )

    def topics(self) -> CopiedTopics:
        """The topics where the consumers are. Raises KafkaOperationError."""
        self._partitions = self._there.topics().partition_counts
        topics = sort_topics(self.flow, self.back, self._partitions.keys())
        found, _ = self._there.identify([*topics.returning, *topics.never])
        self.ids = {name: each.topic_id for name, each in found.items()}
        return topics

    def recorded(
        self, partitions: Mapping[str, Sequence[RecordedPartition]]
    ) -> Mapping[str, RecordedTopic]:
        return {
            name: RecordedTopic(self.ids.get(name), self.source_ids.get(self._origin(name)), found)
            for name, found in partitions.items()
        }

    def positions(self, topics: Collection[str]) -> Mapping[TopicPartition, int]:
        """The next offsets that the flow back would copy, where it has a position."""
        found = read_commits(self.back, self._clients, topics)
        return {partition: commit.offset + 1 for partition, commit in found.items()}

    def has_offsets_topic(self) -> bool:
        """Whether the topic with the positions of the flow back exists."""
        topic = connect_offsets_topic(self.back)
        return self._clients[self.back.flow.target].topic_exists(topic)

    def copies(
        self,
        names: Iterable[str],
        recorded: RecordedEnds | None = None,
        moved_at: float | None = None,
        positions: Mapping[TopicPartition, int] | None = None,
    ) -> Mapping[TopicPartition, CopyFacts]:
        """The facts of all partitions of the copies *names*. Raises KafkaOperationError."""
        copies = [
            TopicPartition(name, number)
            for name in sorted(names)
            for number in range(self._partitions[name])
        ]
        starts, ends = self._there.start_offsets(copies), self._there.end_offsets(copies)
        self.unread = sorted(starts.errors.keys() | ends.errors.keys())
        origins = {each: TopicPartition(self._origin(each[0]), each[1]) for each in copies}
        of_source = {each.topic for each in origins.values()}
        source_ends = self._source_ends(origins.values(), is_needed=positions is not None)
        syncs = self._read("offset syncs", lambda: read_syncs(self.flow, self._clients, of_source))
        commits = self._read("commits", lambda: read_commits(self.flow, self._clients, of_source))
        is_dense = not (self._others or self._is_transactional())
        found = {}
        for each, origin in origins.items():
            points = syncs[origin].points if origin in syncs else ()
            until = -math.inf if moved_at is None else moved_at - _MARGIN_SECONDS
            before = [point for point in points if point.at < until]
            topic = recorded.topics.get(each.topic) if recorded else None
            ours, theirs = self.ids.get(each.topic), self.source_ids.get(origin.topic)
            is_same = topic is not None and (
                None in {topic.topic_id, ours} or topic.topic_id == ours
            )
            has_it = topic is not None and each.partition < len(topic.partitions)
            found[each] = CopyFacts(
                starts.offsets.get(each, 0),
                ends.offsets.get(each, 0),
                sync=points[-1] if points else None,
                source_end=source_ends.get(origin),
                dense=is_dense,
                committed=commits[origin].offset if origin in commits else None,
                recorded=topic.partitions[each.partition] if topic and has_it else None,
                is_new=recorded is not None and not (has_it and is_same),
                source_is_new=topic is not None
                and None not in {topic.source_id, theirs}
                and topic.source_id != theirs,
                moved_sync=before[-1] if before else None,
                position=(positions or {}).get(each),
            )
        return found

    def _origin(self, copy: str) -> str:
        return replication_policy(self.flow).upstream_topic(copy) or copy

    def _source_ends(
        self, partitions: Collection[TopicPartition], *, is_needed: bool
    ) -> Mapping[TopicPartition, int]:
        """Ends on the source, 0 for what does not exist there; what cannot be read is missing."""
        source = self._clients[self.flow.flow.source]
        try:
            found, errors = source.identify({each.topic for each in partitions})
            self.source_ids = {name: each.topic_id for name, each in found.items()}
            counts = {name: each.partitions for name, each in found.items()}
            existing = [each for each in partitions if each.partition < counts.get(each.topic, 0)]
            read = source.end_offsets(existing).offsets
        except (KafkaOperationError, TimeoutError) as error:
            if is_needed:
                raise
            self.problems.append(f"not checked whether others have written: {error}")
            return {}
        absent = set(partitions).difference(existing)
        denied = {name for name, kind in errors.items() if kind is not ErrorKind.UNKNOWN_TOPIC}
        return {each: 0 for each in absent if each.topic not in denied} | read

    def _read(
        self, what: str, read: Callable[[], Mapping[TopicPartition, _Found]]
    ) -> Mapping[TopicPartition, _Found]:
        try:
            return read()
        except (KafkaOperationError, TimeoutError) as error:
            self.problems.append(f"{what} were not read: {error}")
            return {}

    def _is_transactional(self) -> bool:
        """Whether the flow copies in transactions, by its running worker or its configuration."""
        try:
            running = read_connectors(self._there, connect_configs_topic(self.flow))
            return self.flow.exactly_once or commits_in_transactions(
                self.flow, self._there, running
            )
        except (KafkaOperationError, TimeoutError):
            return True  # not known: markers are possible


@contextmanager
def _opened(source: ConfigSource, flow: str) -> Iterator[_Reader]:
    config = read_config(source)
    (moved,) = config.as_settings().select([parse_flow(flow).label])
    with open_clients(config) as clients:
        try:
            yield _Reader(config, moved, clients)
        except (KafkaOperationError, TimeoutError) as error:
            raise UserError(f"{error}; mm2slo check --connect shows why") from None


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {str(file)!r}: {error.strerror}") from None


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
    reader: _Reader, topics: CopiedTopics, starts: Sequence[PlannedStart]
) -> Iterator[str]:
    known = [each for each in starts if each.start is not None]
    counted = plural(len(starts), "partition")
    yield f"{reader.back.label}: {plural(len(known), 'start')} for {counted}"
    if known:
        counts = Counter(_BASES[each.basis] for each in known if each.basis)
        yield f"  from {', '.join(f'{name}: {count:,}' for name, count in counts.items())}"
        # Offsets: markers of transactions and compacted records take up some of them.
        returning = plural(sum(each.returning for each in known), "record")
        yield f"  returning so far: at most {returning}"
        yield f"  duplicates with this plan: at most {sum(each.again for each in known):,}"
        yield f"  duplicates without it: {sum(each.unplanned for each in known):,}"
    if uncopied := sum(each.uncopied for each in known):
        most = f"at most {plural(uncopied, 'record')}"
        yield (
            f"  {most} of {reader.flow.flow.source} may not have been copied when the consumers "
            f"moved; they stay there unless {reader.flow.label} copies them before this plan is "
            "carried out, and then return as duplicates"
        )
    stated = [str(each.partition) for each in known if not each.proved]
    gone = [f"{each.partition} ({each.gone:,})" for each in known if each.gone]
    unknown = [f"{each.partition} ({each.problem})" for each in starts if each.start is None]
    for line in (
        *_named("right if nothing else had written when it was recorded", stated),
        *_named("removed by retention, never returns", gone),
        *_named("no start, its position stays", unknown),
        *_named("never returns, by policy or filter", topics.never),
        *_named("no copies, return as they are", topics.own),
        *reader.problems,
    ):
        yield f"  {line}"


_BASES: Final = {
    StartBasis.RECORDED: "recorded ends",
    StartBasis.SYNC: "offset syncs",
    StartBasis.NEW: "the start of new logs",
    StartBasis.RETURNED: "positions that are further already",
}


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
                "proved": each.proved,
                "duplicates_at_most": each.again,
                "uncopied": each.uncopied,
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
