"""The story told from begin to end, with what independent readers found in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from injecting import FullRead, compare, read_all
from watching import watch

from audited.contents import now
from audited.play import (
    APPENDED,
    CLEAN,
    SETTINGS,
    STOPPED,
    TOPICS,
    US_EU,
    Story,
    create,
    kill,
    open_transaction,
    send,
    strike,
    traffic,
)

if TYPE_CHECKING:
    from injecting import Stored

    from mm2slo_lab import Lab

CANARIES_OFF = {"canary": {"carrier": "off"}}


@dataclass(frozen=True, slots=True)
class Told:
    """The story, and each topic as an independent reader finds it on both sides."""

    story: Story
    source: dict[str, list[Stored]]
    target: dict[str, list[Stored]]
    reads: dict[str, FullRead]


def tell(lab: Lab, prefix: str) -> Told:
    """Tell the story, audit it, and leave MirrorMaker 2 as it was."""
    lab.mm2.configure(SETTINGS)
    lab.mm2.restart()
    try:
        with watch(lab, [US_EU], flow=CANARIES_OFF) as exporter:
            exporter.until_ready()
            story = Story(lab, prefix, now())
            create(story)
            send(story)
            kill(story)
            strike(story)
            with open_transaction(story), traffic(lab, story.topic(CLEAN), rate=500):
                pass
        return _read(story)
    finally:
        lab.mm2.stop()
        lab.mm2.configure({})
        lab.mm2.start()


def _read(story: Story) -> Told:
    us, eu = (story.lab.cluster(alias).librdkafka() for alias in ("us", "eu"))
    names = [name for name in TOPICS if name != STOPPED]
    source = {name: read_all(us, story.topic(name), "read_committed") for name in names}
    target = {name: read_all(eu, story.copy(name)) for name in names}
    reads = {
        name: compare(source[name], target[name], timestamps=name != APPENDED) for name in names
    }
    return Told(story, source, target, reads)
