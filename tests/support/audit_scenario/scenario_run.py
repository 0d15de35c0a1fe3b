"""Runs and audits the scenario, and reads its topics independently."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

from exporter_watch import Watch, watch
from fault_injection import FullRead, Place, Stored, compare, read_all

from audit_scenario.arrival_recorder import ArrivalRecorder, record_arrivals
from audit_scenario.audit_process import AuditRequest, AuditResult, audit_process
from audit_scenario.flow_waits import source_ends, wait_copied
from audit_scenario.record_contents import now
from audit_scenario.scenario_steps import (
    BOTH_STAMPED,
    CLEAN,
    CLEAN_RECORDS,
    FLUSH_MS,
    SETTINGS,
    STOPPED,
    TARGET_STAMPED,
    TOPICS,
    US_EU,
    ScenarioTopics,
    create_topics,
    kill_mirrormaker,
    open_transaction,
    send_records,
    stop_mirrormaker,
    traffic,
    write_target_faults,
)
from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import UnitOutcome
from mm2slo_lab.running_lab import Lab

FLOW = {
    "canary": {"carrier": "off"},
    "isolation": "read_committed",
    "offset_flush_interval": f"{FLUSH_MS}ms",
}


RECORDS_DURING_AUDIT = 500
"""At least so many records are replicated after the audit's start, before its window ends."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When an independent consumer received a topic's records on both sides, epoch ms."""

    source: dict[Place, int]
    target: dict[Place, int]


@dataclass(frozen=True, slots=True)
class AuditScenario:
    """The topics, their records as an independent reader finds them, and the audits."""

    topics: ScenarioTopics
    source: dict[str, list[Stored]]
    target: dict[str, list[Stored]]
    reads: dict[str, FullRead]
    arrivals: dict[str, Arrivals]
    """Of the topics whose target stamps records."""
    result: AuditResult
    """Taken while MirrorMaker 2 ran and records were produced."""
    stopped: AuditResult
    """Audit of the topic with records produced after MirrorMaker 2 stopped."""
    stopped_at: int

    def outcome(self, name: str) -> UnitOutcome:
        """The audit's outcome for a topic."""
        return self.result.outcomes[self.topics.copy(name)]


def play_scenario(lab: Lab, prefix: str) -> AuditScenario:
    """Run and audit the scenario; restores MirrorMaker 2's configuration."""
    lab.mm2.configure(SETTINGS)
    lab.mm2.restart()
    try:
        with ExitStack() as stack:
            spark = stack.enter_context(audit_process())
            seen = stack.enter_context(watch(lab, [US_EU], flow=FLOW))
            seen.until_ready()
            topics = ScenarioTopics(lab, prefix, now())
            create_topics(topics)
            _wait_polled(seen, topics)
            recorders = tuple(map(stack.enter_context, _recorders(topics)))
            send_records(topics)
            kill_mirrormaker(topics)
            write_target_faults(topics)
            with open_transaction(topics), traffic(lab, topics.topic(CLEAN), rate=100):
                wait_copied(lab, US_EU, topics.copy(CLEAN), CLEAN_RECORDS + RECORDS_DURING_AUDIT)
                result = spark.audit(_request(topics, _ALL))
            arrivals = {name: _arrivals(topics, name, *recorders) for name in _TIMED}
            sent = sum(source_ends(lab, US_EU, topics.topic(CLEAN)).values())
            wait_copied(lab, US_EU, topics.copy(CLEAN), sent)
            source, target, reads = _read(topics)
            stopped_at = stop_mirrormaker(topics)
            stopped = spark.audit(_request(topics, (STOPPED,), max_pending=1))
        return AuditScenario(topics, source, target, reads, arrivals, result, stopped, stopped_at)
    finally:
        lab.mm2.stop()
        lab.mm2.configure({})
        lab.mm2.start()


def _wait_polled(seen: Watch, topics: ScenarioTopics) -> None:
    """Wait until the timeline has polls of the timed topics from before their first records."""
    ends = ("mm2_source_end_offset", "mm2_target_end_offset")
    seen.until(
        lambda s: (
            s.value("mm2_exporter_timeline_writer") == 1
            and all(s.values(end, topic=topics.topic(name)) for end in ends for name in _TIMED)
        ),
        "polls of the topics",
    )
    seen.after_cycles(1)


def _request(
    topics: ScenarioTopics, names: Sequence[str], max_pending: int | None = None
) -> AuditRequest:
    return AuditRequest(
        topics.lab.config_yaml(flow=FLOW),
        Window(topics.start, now()),
        flows=(US_EU.label,),
        topics=tuple(map(topics.topic, names)),
        max_pending=max_pending,
    )


_ALL = tuple(name for name in TOPICS if name != STOPPED)
_TIMED = (TARGET_STAMPED, BOTH_STAMPED)
_Sides = tuple[dict[str, "list[Stored]"], dict[str, "list[Stored]"], dict[str, "FullRead"]]


def _read(topics: ScenarioTopics) -> _Sides:
    us, eu = (topics.lab.cluster(alias).librdkafka() for alias in ("us", "eu"))
    source = {name: read_all(us, topics.topic(name), "read_committed") for name in _ALL}
    target = {name: read_all(eu, topics.copy(name)) for name in _ALL}
    reads = {
        name: compare(source[name], target[name], timestamps=name not in _TIMED) for name in _ALL
    }
    return source, target, reads


def _recorders(topics: ScenarioTopics) -> tuple[AbstractContextManager[ArrivalRecorder], ...]:
    """One for the source and one for the target."""
    names = {"us": topics.topic, "eu": topics.copy}
    return tuple(
        record_arrivals(
            topics.lab.cluster(alias).librdkafka(),
            {named(name): TOPICS[name] for name in _TIMED},
        )
        for alias, named in names.items()
    )


def _arrivals(
    topics: ScenarioTopics, name: str, source: ArrivalRecorder, target: ArrivalRecorder
) -> Arrivals:
    us, eu = (topics.lab.cluster(alias).librdkafka() for alias in ("us", "eu"))
    topic, copy = topics.topic(name), topics.copy(name)
    return Arrivals(
        source.wait_arrival_times(topic, [each.place for each in read_all(us, topic)]),
        target.wait_arrival_times(copy, [each.place for each in read_all(eu, copy)]),
    )
