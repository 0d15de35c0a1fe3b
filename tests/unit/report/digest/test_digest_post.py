"""Posting each digest once, over repeated and concurrent runs and errors."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from digest_samples import entry, report

from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_report.digest.digest_message import Message, build_message
from mm2slo_report.digest.slo_digest import (
    MessageGoneError,
    PostRefusedError,
    PostResult,
    PostUnconfirmedError,
    post_once,
)
from mm2slo_report.service_settings import ReportLinks
from mm2slo_store.store import Store

MESSAGE = build_message(report([entry(Flow("us", "eu"))]), [], ReportLinks())
PERIOD = "7d to 2026-07-20"


class FakePoster:
    """Records messages; fails on demand."""

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
            raise MessageGoneError("message_not_found")
        self.updated.append(message.text)
        return ts


@pytest.fixture
def digests(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "audit.db") as store:
        yield store


def test_post_once_second_run_posts_nothing(digests: Store) -> None:
    poster = FakePoster(ids=False)
    done = [post_once(MESSAGE, poster, digests, period=PERIOD) for _ in range(3)]
    assert done == [PostResult.POSTED, PostResult.POSTED_BEFORE, PostResult.POSTED_BEFORE]
    assert poster.posted == [MESSAGE.text]


def test_post_once_next_period_is_posted(digests: Store) -> None:
    poster = FakePoster()
    for period in (PERIOD, "7d to 2026-07-27"):
        assert post_once(MESSAGE, poster, digests, period=period) is PostResult.POSTED
    assert len(poster.posted) == 2


def test_post_once_after_refusal_can_be_repeated(digests: Store) -> None:
    poster = FakePoster(fails=PostRefusedError("no"))
    with pytest.raises(PostRefusedError):
        post_once(MESSAGE, poster, digests, period=PERIOD)
    poster.fails = None
    assert post_once(MESSAGE, poster, digests, period=PERIOD) is PostResult.POSTED


def test_post_once_after_unconfirmed_post_stays_claimed(digests: Store) -> None:
    poster = FakePoster(fails=PostUnconfirmedError("no response"))
    with pytest.raises(PostUnconfirmedError):
        post_once(MESSAGE, poster, digests, period=PERIOD)
    poster.fails = None
    assert post_once(MESSAGE, poster, digests, period=PERIOD) is PostResult.CLAIMED
    assert poster.posted == []
    assert post_once(MESSAGE, poster, digests, period=PERIOD, again=True) is PostResult.POSTED


def test_post_once_again_updates_the_message_of_a_bot(digests: Store) -> None:
    poster = FakePoster()
    post_once(MESSAGE, poster, digests, period=PERIOD)
    assert post_once(MESSAGE, poster, digests, period=PERIOD, again=True) is PostResult.UPDATED
    assert (len(poster.posted), len(poster.updated)) == (1, 1)


def test_post_once_again_posts_if_the_message_cannot_be_updated(
    digests: Store,
) -> None:
    poster = FakePoster()
    post_once(MESSAGE, poster, digests, period=PERIOD)
    poster.posted.append("another message is the last one")
    assert post_once(MESSAGE, poster, digests, period=PERIOD, again=True) is PostResult.POSTED
    webhook = FakePoster(ids=False)
    for _ in range(2):
        assert post_once(MESSAGE, webhook, digests, period=PERIOD, again=True) is PostResult.POSTED


def test_post_once_again_refused_keeps_the_first_post(digests: Store) -> None:
    poster = FakePoster(ids=False)
    post_once(MESSAGE, poster, digests, period=PERIOD)
    poster.fails = PostRefusedError("no")
    with pytest.raises(PostRefusedError):
        post_once(MESSAGE, poster, digests, period=PERIOD, again=True)
    poster.fails = None
    assert post_once(MESSAGE, poster, digests, period=PERIOD) is PostResult.POSTED_BEFORE


def test_post_once_concurrent_threads_post_once(digests: Store) -> None:
    poster, ready = FakePoster(), threading.Barrier(8)
    found: list[PostResult] = []

    def run() -> None:
        ready.wait()
        found.append(post_once(MESSAGE, poster, digests, period=PERIOD))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found.count(PostResult.POSTED) == 1
    assert poster.posted == [MESSAGE.text]
