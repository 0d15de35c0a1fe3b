"""The story told from start to end, with what independent readers found in it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fault_injection import FullRead, compare, read_all
from watching import watch

from audited.auditing import Audited, Request, auditor
from audited.command import Finished, command
from audited.contents import now
from audited.play import (
    APPENDED,
    CLEAN,
    CLEAN_RECORDS,
    FLUSH_MS,
    SETTINGS,
    STAMPED,
    STOPPED,
    TOPICS,
    US_EU,
    Story,
    create,
    kill,
    open_transaction,
    send,
    stop,
    strike,
    traffic,
)
from audited.waiting import source_ends, wait_copied
from audited.witness import witness
from mm2slo_core.audit.audit_scope import Window

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from fault_injection import Place, Stored

    from audited.witness import Witness
    from mm2slo_core.audit.unit_outcome import UnitOutcome
    from mm2slo_lab import Lab

FLOW = {
    "canary": {"carrier": "off"},
    "isolation": "read_committed",
    "offset_flush_interval": f"{FLUSH_MS}ms",
}


MEANWHILE = 500
"""Records that are copied under the eyes of the audit, at least, before its window ends."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When a witness had the records of a topic on both sides, epoch ms."""

    source: dict[Place, int]
    target: dict[Place, int]


@dataclass(frozen=True, slots=True)
class Told:
    """The story, each topic as an independent reader finds it on both sides, and the audits."""

    story: Story
    source: dict[str, list[Stored]]
    target: dict[str, list[Stored]]
    reads: dict[str, FullRead]
    arrivals: dict[str, Arrivals]
    """Of the topics whose target stamps records."""
    audited: Audited
    """While MirrorMaker 2 ran and records kept coming."""
    stopped: Finished
    """Of the topic that got records after MirrorMaker 2 had stopped."""
    stopped_at: int

    def outcome(self, name: str) -> UnitOutcome:
        """What the audit says of a topic."""
        return self.audited.outcomes[self.story.copy(name)]


def tell(lab: Lab, prefix: str) -> Told:
    """Tell the story, audit it, and leave MirrorMaker 2 as it was."""
    lab.mm2.configure(SETTINGS)
    lab.mm2.restart()
    try:
        with ExitStack() as open_ones:
            spark = open_ones.enter_context(auditor())
            open_ones.enter_context(watch(lab, [US_EU], flow=FLOW)).until_ready()
            story = Story(lab, prefix, now())
            create(story)
            witnesses = tuple(map(open_ones.enter_context, _witnesses(story)))
            send(story)
            kill(story)
            strike(story)
            with open_transaction(story), traffic(lab, story.topic(CLEAN), rate=500):
                wait_copied(lab, US_EU, story.copy(CLEAN), CLEAN_RECORDS + MEANWHILE)
                audited = spark.audit(_request(story))
            arrivals = {name: _arrivals(story, name, *witnesses) for name in _TIMED}
        sent = sum(source_ends(lab, US_EU, story.topic(CLEAN)).values())
        wait_copied(lab, US_EU, story.copy(CLEAN), sent)
        source, target, reads = _read(story)
        stopped_at = stop(story)
        stopped = command(
            story.lab.config_yaml(flow=FLOW),
            *("--flow", US_EU.label, "--topic", story.topic(STOPPED)),
            *("--since", "1h", "--sample", "100%", "--max-pending", "1ms"),
        )
        return Told(story, source, target, reads, arrivals, audited, stopped, stopped_at)
    finally:
        lab.mm2.stop()
        lab.mm2.configure({})
        lab.mm2.start()


def _request(story: Story) -> Request:
    return Request(
        story.lab.config_yaml(flow=FLOW),
        Window(story.start, now()),
        flows=(US_EU.label,),
        topics=tuple(map(story.topic, _ALL)),
    )


_ALL = tuple(name for name in TOPICS if name != STOPPED)
_TIMED = (APPENDED, STAMPED)
_Sides = tuple[dict[str, "list[Stored]"], dict[str, "list[Stored]"], dict[str, "FullRead"]]


def _read(story: Story) -> _Sides:
    us, eu = (story.lab.cluster(alias).librdkafka() for alias in ("us", "eu"))
    source = {name: read_all(us, story.topic(name), "read_committed") for name in _ALL}
    target = {name: read_all(eu, story.copy(name)) for name in _ALL}
    reads = {
        name: compare(source[name], target[name], timestamps=name not in _TIMED) for name in _ALL
    }
    return source, target, reads


def _witnesses(story: Story) -> tuple[AbstractContextManager[Witness], ...]:
    """One of the source and one of the target."""
    names = {"us": story.topic, "eu": story.copy}
    return tuple(
        witness(
            story.lab.cluster(alias).librdkafka(),
            {named(name): TOPICS[name] for name in _TIMED},
        )
        for alias, named in names.items()
    )


def _arrivals(story: Story, name: str, source: Witness, target: Witness) -> Arrivals:
    us, eu = (story.lab.cluster(alias).librdkafka() for alias in ("us", "eu"))
    topic, copy = story.topic(name), story.copy(name)
    return Arrivals(
        source.had(topic, [each.place for each in read_all(us, topic)]),
        target.had(copy, [each.place for each in read_all(eu, copy)]),
    )
