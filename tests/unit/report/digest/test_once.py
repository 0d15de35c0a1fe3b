"""Each digest once, over threads, processes and failures."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from digests import MemoryDigests, entry, report

from mm2slo_core.topology import Flow
from mm2slo_report.digest.links import Links
from mm2slo_report.digest.message import Message, digest
from mm2slo_report.digest.once import Outcome, post_once
from mm2slo_report.digest.posting.port import Gone, Refused, Unsure

if TYPE_CHECKING:
    from mm2slo_core.errors import UserError

MESSAGE = digest(report([entry(Flow("us", "eu"))]), [], Links())
PERIOD = "7d to 2026-07-20"


class Channel:
    """Takes messages as told."""

    channel = "ops"

    def __init__(self, *, ids: bool = True, fails: UserError | None = None) -> None:
        self.posted: list[str] = []
        self.updated: list[str] = []
        self.fails = fails
        self._ids = ids

    def post(self, message: Message) -> str:
        if self.fails is not None:
            raise self.fails
        self.posted.append(message.text)
        return f"{len(self.posted)}.0" if self._ids else ""

    def update(self, message: Message, ts: str) -> str:
        if ts != f"{len(self.posted)}.0":
            raise Gone("message_not_found")
        self.updated.append(message.text)
        return ts


@pytest.fixture
def digests() -> MemoryDigests:
    return MemoryDigests()


def test_a_second_run_posts_nothing(digests: MemoryDigests) -> None:
    channel = Channel(ids=False)
    done = [post_once(MESSAGE, channel, digests, period=PERIOD) for _ in range(3)]
    assert done == [Outcome.POSTED, Outcome.POSTED_BEFORE, Outcome.POSTED_BEFORE]
    assert channel.posted == [MESSAGE.text]


def test_another_period_is_another_digest(digests: MemoryDigests) -> None:
    channel = Channel()
    for period in (PERIOD, "7d to 2026-07-27"):
        assert post_once(MESSAGE, channel, digests, period=period) is Outcome.POSTED
    assert len(channel.posted) == 2


def test_what_slack_refused_may_be_tried_again(digests: MemoryDigests) -> None:
    channel = Channel(fails=Refused("no"))
    with pytest.raises(Refused):
        post_once(MESSAGE, channel, digests, period=PERIOD)
    channel.fails = None
    assert post_once(MESSAGE, channel, digests, period=PERIOD) is Outcome.POSTED


def test_what_may_have_been_posted_is_not_posted_twice(digests: MemoryDigests) -> None:
    channel = Channel(fails=Unsure("who knows"))
    with pytest.raises(Unsure):
        post_once(MESSAGE, channel, digests, period=PERIOD)
    channel.fails = None
    assert post_once(MESSAGE, channel, digests, period=PERIOD) is Outcome.CLAIMED
    assert channel.posted == []
    assert post_once(MESSAGE, channel, digests, period=PERIOD, again=True) is Outcome.POSTED


def test_again_changes_the_message_of_a_bot(digests: MemoryDigests) -> None:
    channel = Channel()
    post_once(MESSAGE, channel, digests, period=PERIOD)
    assert post_once(MESSAGE, channel, digests, period=PERIOD, again=True) is Outcome.UPDATED
    assert (len(channel.posted), len(channel.updated)) == (1, 1)


def test_again_posts_anew_where_the_message_is_gone_or_has_no_id(digests: MemoryDigests) -> None:
    channel = Channel()
    post_once(MESSAGE, channel, digests, period=PERIOD)
    channel.posted.append("another message is the last one")
    assert post_once(MESSAGE, channel, digests, period=PERIOD, again=True) is Outcome.POSTED
    hook = Channel(ids=False)
    post_once(MESSAGE, hook, MemoryDigests(), period=PERIOD)
    for _ in range(2):
        assert post_once(MESSAGE, hook, digests, period=PERIOD, again=True) is Outcome.POSTED


def test_a_refusal_of_another_try_keeps_what_was_posted(digests: MemoryDigests) -> None:
    channel = Channel(ids=False)
    post_once(MESSAGE, channel, digests, period=PERIOD)
    channel.fails = Refused("no")
    with pytest.raises(Refused):
        post_once(MESSAGE, channel, digests, period=PERIOD, again=True)
    channel.fails = None
    assert post_once(MESSAGE, channel, digests, period=PERIOD) is Outcome.POSTED_BEFORE


def test_of_many_at_once_one_posts(digests: MemoryDigests) -> None:
    channel, ready = Channel(), threading.Barrier(8)
    found: list[Outcome] = []

    def run() -> None:
        ready.wait()
        found.append(post_once(MESSAGE, channel, digests, period=PERIOD))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found.count(Outcome.POSTED) == 1
    assert channel.posted == [MESSAGE.text]
