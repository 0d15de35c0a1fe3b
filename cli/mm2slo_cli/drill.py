"""`mm2slo drill`: fail over for practice, and measure what is lost and how long it takes.

On the lab by default; on clusters of yours after their flow's name was typed. It writes a topic of
its own to the source, and reads copies with groups of its own, from where real groups would resume.
"""

import getpass
import hashlib
import logging
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final

import requests
import typer
from rich.console import Console

from mm2slo_audit.report.report_file import check_report_path, write_formatted
from mm2slo_audit.scope.cluster_readings import open_clients
from mm2slo_audit.scope.flow_topic_reader import read_to_end
from mm2slo_cli.config_files import read_config
from mm2slo_cli.config_options import ConfigSource, config_options
from mm2slo_cli.cutover import POLL_SECONDS, option_duration, running_exporter
from mm2slo_cli.main import new_app
from mm2slo_cli.option_values import confirm_flow, parse_flow
from mm2slo_cli.terminal_progress import show_steps
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.exporter_settings import FlowSettings
from mm2slo_core.cutover.drill_report import (
    DrillReport,
    DrillVerdict,
    GroupRecovery,
    PredictedLoss,
    drill_html,
    drill_json,
    drill_markdown,
    find_loss,
)
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.records.mirror_records import Checkpoint, DecodeError
from mm2slo_core.replication_policy import internal_topics
from mm2slo_core.topic_filters import GroupFilter
from mm2slo_core.topic_selection import replicated_topics, replication_policy
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_core.user_errors import UserError
from mm2slo_exporter.service.exporter_service import Exporter
from mm2slo_exporter.state.flow_report import FlowReport
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.drill_clients import DrillTraffic, StandIn, delete_groups, delete_topic
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_kafka.partition_offsets import Isolation

drill_app = new_app()

TOPIC: Final = "mm2slo.drill"
"""Prefix of the topic of a drill, and of the group that reads it on the source, as an application
does. Each drill has its own: MirrorMaker 2 keeps positions of topics that are deleted."""

LAB: Final = "lab"
_PARTITIONS: Final = 3
_FORMATS: Final[Mapping[str, Callable[[DrillReport], str]]] = {
    ".html": drill_html,
    ".md": drill_markdown,
    ".json": drill_json,
}


@drill_app.command()
@config_options()
def run(  # noqa: PLR0913 - one parameter per option
    source: ConfigSource,
    *,
    flow: Annotated[
        str | None, typer.Option(metavar="FLOW", help="For example 'us->eu'. [default: the lab's]")
    ] = None,
    confirm: Annotated[
        str | None,
        typer.Option(metavar="FLOW", help="Its name again, instead of typing it when asked."),
    ] = None,
    fault: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="What takes the source away, on clusters of yours. [default: nothing does, and "
            "only the consumers are tried]",
        ),
    ] = None,
    behind: Annotated[
        str, typer.Option(metavar="DURATION", help="Lab: stop MirrorMaker 2 before the fault.")
    ] = "0s",
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP", help="A real group to stand in for; repeatable."),
    ] = None,
    traffic: Annotated[
        str, typer.Option(metavar="DURATION", help="How long to write before the fault.")
    ] = "20s",
    rate: Annotated[int, typer.Option(min=1, help="Records to write per second.")] = 50,
    read_rate: Annotated[
        int, typer.Option(min=10, help="Records that each consumer reads per second at most.")
    ] = 1000,
    decision: Annotated[
        str, typer.Option(metavar="DURATION", help="How long the decision takes: stated.")
    ] = "0s",
    rpo: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Objective for the recovery point.")
    ] = None,
    rto: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Objective for the recovery time.")
    ] = None,
    alertmanager: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Its first new alert of the flow or its source detects. [default: mm2slo's state]",
        ),
    ] = None,
    wait: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="How long a stage may take; MirrorMaker 2 finds new topics every 10 minutes.",
        ),
    ] = "25m",
    report: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Report: .html, .md or .json; repeatable."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who performs it. [default: the user]")
    ] = None,
) -> None:
    """Fail over for practice, and measure what is lost and how long it takes.

    Without a configuration on a lab of its own. Exits with 1 if an objective
    is not met or not known. For example:
    mm2slo drill --rpo 10s --rto 2m --report drill.html
    """
    logging.basicConfig(level=logging.CRITICAL)  # a source that is away is part of the drill
    files = [check_report_path(each, _FORMATS) for each in report or ()]
    terms = _Terms(
        groups=tuple(group or []),
        traffic=option_duration("--traffic", traffic),
        behind=option_duration("--behind", behind),
        decision=option_duration("--decision", decision),
        rate=rate,
        read_rate=read_rate,
        alertmanager=alertmanager.rstrip("/") if alertmanager else None,
        wait=option_duration("--wait", wait),
    )
    objectives = [
        None if text is None else option_duration(name, text)
        for name, text in (("--rpo", rpo), ("--rto", rto))
    ]
    on_lab = not source
    if on_lab and (flow or fault or group):
        raise UserError("--flow, --fault and --group are for clusters of yours: expected --config")
    if not on_lab and terms.behind:
        raise UserError("--behind is for the lab: expected --fault to stop MirrorMaker 2 as well")
    if not on_lab and not flow:
        raise UserError("--flow is missing: expected the flow to fail over, as in --flow 'us->eu'")
    with ExitStack() as stack:
        if on_lab:
            say = stack.enter_context(show_steps(Console(stderr=True), "drill"))
            config, moved, injected = stack.enter_context(_lab(terms, say))
            place = LAB
        else:
            config, moved = read_config(source), parse_flow(flow or "")
            injected = _command(fault, terms.wait)
            config.as_settings().select([moved.label])
            place = _place(config, moved)
            confirm_flow(
                f"The drill writes a topic {TOPIC}.* to {moved.source}, and runs --fault",
                moved,
                confirm,
            )
            say = stack.enter_context(show_steps(Console(stderr=True), "drill"))
        found = DrillReport(
            flow=moved.label,
            performed_by=by or _user(),
            place=place,
            fault=injected.what,
            config_sha256=_digest(source, config),
            version=version("mm2slo"),
            started_at=time.time(),
            poll_seconds=POLL_SECONDS,
            decision_seconds=terms.decision,
            rpo_objective=objectives[0],
            rto_objective=objectives[1],
            injected=injected.inject is not None,
        )
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: it cleans up
        try:
            _Drill(config, moved, terms, found).run(injected, files=files, say=say)
        finally:
            typer.echo(drill_markdown(found))
    bad = {DrillVerdict.NOT_MET, DrillVerdict.UNKNOWN}
    raise typer.Exit(found.rpo_verdict in bad or found.rto_verdict in bad)


@dataclass(frozen=True, slots=True)
class _Terms:
    groups: Sequence[str]
    traffic: float
    behind: float
    decision: float
    rate: int
    read_rate: int
    alertmanager: str | None
    wait: float


_Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Fault:
    """What takes the source away; None: nothing does."""

    what: str
    inject: Callable[[], None] | None
    prepare: Callable[[], None] = lambda: None
    """Makes MirrorMaker 2 fall behind, `behind` seconds before."""


@contextmanager
def _lab(terms: _Terms, say: _Step) -> Iterator[tuple[Config, Flow, _Fault]]:
    from mm2slo_lab.lab_topology import LabTopology  # not needed on clusters of the user
    from mm2slo_lab.running_lab import Lab

    flow = Flow("us", "eu")
    synced = {"sync.group.offsets.enabled": "true", "sync.group.offsets.interval.seconds": "1"}
    with Lab.start(LabTopology(flows=(flow,), mm2_properties=synced), progress=say) as lab:
        what = "the source cluster was killed"
        if terms.behind:
            what = f"MirrorMaker 2 was stopped; {terms.behind:g} s later {what}"
        kill, stop = lab.cluster(flow.source).process.kill, lab.mm2.stop
        yield load_config(lab.config_yaml()), flow, _Fault(what, kill, stop)


def _command(text: str | None, wait: float) -> _Fault:
    """Raises UserError for a command that does not exist, before anything is written."""
    if text is None:
        return _Fault("none: only the consumers were tried", None)
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise UserError(f"--fault {text!r}: {error}; expected a command as in a shell") from None
    if not parts or shutil.which(parts[0]) is None:
        raise UserError(f"--fault {text!r}: expected a command that exists and can be executed")

    def inject() -> None:
        # A file, since what the command leaves in the background would keep a pipe open.
        with tempfile.TemporaryFile() as output:
            try:
                code = subprocess.run(
                    parts, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                    timeout=wait, check=False,
                ).returncode  # fmt: skip
            except subprocess.TimeoutExpired:
                raise UserError(f"--fault {text!r} did not end within {wait:g} s") from None
            output.seek(0)
            problem = output.read().decode(errors="replace").strip()[-300:]
        if code:
            raise UserError(f"--fault {text!r} failed with {code}: {problem}")

    return _Fault(text, inject)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"  # without a name, as in containers


def _place(config: Config, flow: Flow) -> str:
    servers = (config.clusters[each].bootstrap_servers for each in (flow.source, flow.target))
    return " to ".join(servers)


def _digest(source: ConfigSource, config: Config) -> str:
    files = [each for each in (source.config, source.worker) if each]
    files += [*source.mm2, *source.strimzi, *source.connect_json]
    parts = [file.read_bytes() for file in files] or [config.model_dump_json().encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _write(report: DrillReport, files: Sequence[Path]) -> None:
    """A report that cannot be written does not end a drill: it is printed at the end."""
    for file in files:
        try:
            write_formatted(file, report, _FORMATS)
        except UserError as error:
            if (note := str(error)) not in report.notes:
                report.notes.append(note)


class _Drill:
    """The stages of one drill, and what is left to delete."""

    def __init__(self, config: Config, flow: Flow, terms: _Terms, report: DrillReport) -> None:
        (self._flow,) = config.as_settings().select([flow.label])
        self._topic = f"{TOPIC}.{int(report.started_at * 1000):x}"
        pairs = replicated_topics(self._flow, [self._topic])
        if not pairs:
            raise UserError(
                f"{flow.label} does not copy {self._topic}: expected topics that select {TOPIC}.*"
            )
        if not GroupFilter(self._flow.groups, self._flow.groups_exclude).matches(self._topic):
            raise UserError(
                f"{flow.label} does not carry the group {self._topic}: expected groups that select "
                f"{TOPIC}.*"
            )
        self._copy = pairs[0].target
        self._config = config
        self._terms = terms
        self._report = report
        self._reach: _Step = lambda _stage: None
        self._alerts: set[str] = set()
        self._ours = False
        # Aborted records are no copies (KIP-98).
        self._isolation: Isolation = (
            "read_committed" if self._flow.exactly_once else "read_uncommitted"
        )

    def run(self, fault: _Fault, *, files: Sequence[Path], say: _Step) -> None:
        """Run all stages; the report is written after each, also of a drill that ends early.

        Raises UserError for a stage that failed.
        """

        def reach(stage: str) -> None:
            say(stage)
            _write(self._report, files)

        self._reach = reach
        report, flow = self._report, self._flow.flow
        try:
            with open_clients(self._config) as clients, ExitStack() as stack:
                self._source, self._target = clients[flow.source], clients[flow.target]
                self._traffic = DrillTraffic(
                    self._source, self._topic, self._topic, self._terms.rate
                )
                stack.callback(self._clean_up)
                self._start_traffic()
                exporter = stack.enter_context(
                    running_exporter(self._config, flow, groups_every=POLL_SECONDS)
                )
                self._wait_carried(exporter)
                threading.Event().wait(self._terms.traffic)
                self._fail(exporter, fault)
                self._move()
                if fault.inject is not None and _newest(exporter).source_readable:
                    report.notes.append("the source could be read when the groups had moved")
            report.state = "finished"
        except KeyboardInterrupt:
            report.state = "interrupted"
            raise
        except (KafkaOperationError, TimeoutError) as error:
            raise UserError(f"{error}; the report has what was measured before") from None
        finally:
            if report.state == "running":
                report.state = "failed"
            _write(report, files)

    def _start_traffic(self) -> None:
        self._alerts = set(self._firing())  # before the fault: they do not detect it
        if not self._source.create_topic(self._topic, partitions=_PARTITIONS):
            raise UserError(f"{self._topic} exists on {self._source.alias}: nothing was done")
        self._ours = self._report.place != LAB  # which is deleted with all that it has
        self._traffic.start()
        self._reach(f"writing {self._terms.rate} records per second to {self._topic}")

    def _wait_carried(self, exporter: Exporter) -> None:
        """Wait until MirrorMaker 2 copies the topic and carries the group."""

        def is_carried() -> bool:
            report = _newest(exporter)
            known = {each.group for each in report.groups if each.checkpoint_at is not None}
            copied = [each for each in report.topics if each.pair.source == self._topic]
            return self._topic in known and bool(copied) and not copied[0].missing_on_target

        self._wait(is_carried, f"a copy of {self._topic} and a checkpoint of its group")
        self._reach("the topic is copied and its group carried")

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline, pause = time.monotonic() + self._terms.wait, threading.Event()
        while not condition():
            if time.monotonic() > deadline:
                last = f" ({self._traffic.problem})" if self._traffic.problem else ""
                raise TimeoutError(f"waited {self._terms.wait:g} s for {what}{last}")
            pause.wait(0.2)

    def _fail(self, exporter: Exporter, fault: _Fault) -> None:
        """Inject the fault, and wait until it is detected and decided."""
        if self._terms.behind:
            fault.prepare()
            threading.Event().wait(self._terms.behind)
        report = self._report
        report.fault_at = time.time()
        if fault.inject is None:
            report.detected_at, report.detected_by = report.fault_at, "no fault"
        else:
            fault.inject()
            self._reach("the fault is injected")
            self._wait(lambda: self._detects(exporter), "the fault to be detected")
        self._traffic.stop()
        self._reach(f"detected by {report.detected_by}")
        threading.Event().wait(self._terms.decision)
        self._predict(_newest(exporter))
        report.decided_at = time.time()
        self._reach("decided")

    def _predict(self, newest: FlowReport) -> None:
        """Keep what mm2slo says at the decision: by the source as it was last read."""
        point = newest.recovery_point
        if point is not None:
            self._report.predicted_loss = PredictedLoss(point.records, point.seconds, point.read_at)
        readiness = {each.group: each.readiness for each in newest.groups}
        for group in (self._topic, *self._terms.groups):
            judged = readiness.get(group)
            bounds = (judged.redelivery_lower, judged.redelivery_upper) if judged else (None, None)
            reasons = [each.reason for each in judged.blocked] if judged else ["no verdict"]
            problem = f"not ready: {', '.join(dict.fromkeys(reasons))}" if reasons else ""
            self._report.groups.append(GroupRecovery(group, *bounds, problem=problem))

    def _detects(self, exporter: Exporter) -> bool:
        report = self._report
        if self._terms.alertmanager:
            try:
                new = [name for each, name in self._firing().items() if each not in self._alerts]
            except UserError as error:
                self._traffic.problem = str(error)
                return False
            found = f"alert {new[0]}" if new else None
        else:
            state = _newest(exporter)
            is_alive = state.state in {FlowStateName.RUNNING, FlowStateName.IDLE}
            reason = state.state_reason if state.source_readable else "the source cannot be read"
            found = None if is_alive and state.source_readable else f"mm2slo: {reason}"
        if found is not None:
            report.detected_at, report.detected_by = time.time(), found
        return found is not None

    def _firing(self) -> Mapping[str, str]:
        """Names of alerts of the flow or its source, by fingerprint. Raises UserError."""
        if not self._terms.alertmanager:
            return {}
        query = {"active": "true", "silenced": "false", "inhibited": "false"}
        try:
            answer = requests.get(
                f"{self._terms.alertmanager}/api/v2/alerts", params=query, timeout=10
            )
            answer.raise_for_status()
            alerts: list[dict[str, Any]] = answer.json()
        except (requests.RequestException, ValueError) as error:
            raise UserError(
                f"--alertmanager {self._terms.alertmanager!r} does not answer: "
                f"{type(error).__name__}; expected its URL, as in http://alertmanager:9093"
            ) from None
        flow = self._flow
        return {
            each["fingerprint"]: each["labels"]["alertname"]
            for each in alerts
            if each["labels"].get("flow") == flow.label
            or each["labels"].get("cluster") == flow.flow.source
        }

    def _move(self) -> None:
        """Let a consumer on the target resume in the place of each group."""
        copies = [TopicPartition(self._copy, number) for number in range(_PARTITIONS)]
        ends = self._target.end_offsets(copies, self._isolation).offsets
        stand_ins = []
        groups = [each.group for each in self._report.groups]
        all_checkpoints = _checkpoints(self._target, self._flow)
        reads = self._target.group_offsets(groups)
        for each in self._report.groups:
            commits, checkpoints = reads[each.group].found, all_checkpoints[each.group]
            if isinstance(commits, KafkaOperationError):
                raise commits
            if checkpoints.keys() - commits.keys() and not each.problem:
                each.problem = (
                    "no commits on the target: auto.offset.reset decides for a real group"
                )
            stand_in = StandIn(
                self._target,
                each,
                checkpoints | commits,
                self._terms.read_rate,
                keeps_values=each.group == self._topic,
            )
            stand_ins.append(stand_in)
        for stand_in in stand_ins:
            stand_in.start()
        deadline = time.monotonic() + self._terms.wait
        for stand_in in stand_ins:
            stand_in.join(max(deadline - time.monotonic(), 0.0))
            stand_in.stop()
            found = stand_in.recovery
            if found.normal_at is None and not found.problem:
                found.problem = f"not at the end after {self._terms.wait:g} s"
        self._reach("the groups have moved")
        self._judge_loss(ends, stand_ins[0])

    def _judge_loss(self, ends: Mapping[TopicPartition, int], own: StandIn) -> None:
        """Compare the ledger with what the copy had when the groups moved."""
        present = {
            each.value
            for each in read_to_end(self._target, self._copy, isolation=self._isolation)
            if each.value and each.offset < ends.get(TopicPartition(self._copy, each.partition), 0)
        }
        report, traffic = self._report, self._traffic
        report.loss = find_loss(traffic.ledger, present, report.fault_at or 0.0)
        own.recovery.reread = len(traffic.committed & own.values)
        own.recovery.skipped = len(present - own.values - traffic.processed)
        self._reach("the ledger is compared")

    def _clean_up(self) -> None:
        """Stop the traffic; delete the groups, and the topic where it can be reached."""
        self._traffic.stop()
        if not self._ours:
            return
        delete_groups(self._target, [each.group for each in self._report.groups])
        notes = self._report.notes
        for client, topic in ((self._source, self._topic), (self._target, self._copy)):
            if not delete_topic(client, topic):
                notes.append(f"{topic} on {client.alias} is left to delete")
        notes.append(
            f"MirrorMaker 2 may create {self._topic} or its copies again, where topics are created "
            f"automatically, and the group {self._topic} stays on {self._source.alias} until its "
            "commits expire"
        )
        names = {self._flow.flow.source: self._topic, self._flow.flow.target: self._copy}
        for other in self._config.as_settings().flows:
            copied = names.get(other.flow.source)
            if other.flow != self._flow.flow and copied and replicated_topics(other, [copied]):
                notes.append(f"{other.label} may have copied {copied}, too")


def _newest(exporter: Exporter) -> FlowReport:
    return exporter.reports()[0]


def _checkpoints(
    target: ClusterClient, flow: FlowSettings
) -> Mapping[str, dict[TopicPartition, int]]:
    """The newest checkpoints of the flow, by group."""
    topic = internal_topics(flow.flow, replication_policy(flow)).checkpoints.topic
    found: defaultdict[str, dict[TopicPartition, int]] = defaultdict(dict)
    for record in read_to_end(target, topic):
        with suppress(DecodeError):
            decoded = Checkpoint.decode(record.key, record.value)
            if isinstance(decoded, Checkpoint):
                found[decoded.group][decoded.topic_partition] = decoded.downstream_offset
    return found
