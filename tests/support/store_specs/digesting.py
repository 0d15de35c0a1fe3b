"""How digests are claimed and noted, on every back-end: a class of tests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from mm2slo_core.errors import UserError
from mm2slo_store import Digest
from store_specs.history_process import start

if TYPE_CHECKING:
    from store_specs.back_end import BackEnd

WEEK, CHANNEL = "2026-W47", "C0123"


class DigestingContract:
    """Once per period and channel."""

    def test_a_digest_is_claimed_once_and_noted(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            assert store.digest(WEEK, CHANNEL) is None
            assert store.claim_digest(WEEK, CHANNEL)
            assert not store.claim_digest(WEEK, CHANNEL)
            assert store.claim_digest(WEEK, "C9")
            assert store.claim_digest("2026-W48", CHANNEL)
            claimed_at = back_end.clock.now
            assert store.digest(WEEK, CHANNEL) == Digest(WEEK, CHANNEL, claimed_at, None, None)
            back_end.clock.now += 5
            store.note_digest(WEEK, CHANNEL, "1764.5")
            sent = Digest(WEEK, CHANNEL, claimed_at, claimed_at + 5, "1764.5")
            assert store.digest(WEEK, CHANNEL) == sent
        with back_end.open() as store:
            assert not store.claim_digest(WEEK, CHANNEL)
            assert not store.release_digest(WEEK, CHANNEL)
            assert store.digest(WEEK, CHANNEL) == sent

    def test_what_could_not_be_posted_may_be_claimed_again(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            assert not store.release_digest(WEEK, CHANNEL)
            assert store.claim_digest(WEEK, CHANNEL)
            assert store.release_digest(WEEK, CHANNEL)
            assert store.digest(WEEK, CHANNEL) is None
            assert store.claim_digest(WEEK, CHANNEL)

    def test_a_claim_that_nobody_ended_stays(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            assert store.claim_digest(WEEK, CHANNEL)
            claimed_at = back_end.clock.now
        back_end.clock.now += 366 * 86_400_000
        with back_end.open() as store:
            assert not store.claim_digest(WEEK, CHANNEL)
            assert store.digest(WEEK, CHANNEL) == Digest(WEEK, CHANNEL, claimed_at, None, None)

    def test_what_is_not_claimed_cannot_be_noted(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            with pytest.raises(UserError, match=f"no claim of the digest of {WEEK} for {CHANNEL}"):
                store.note_digest(WEEK, CHANNEL, None)
            assert store.digest(WEEK, CHANNEL) is None

    def test_of_many_that_claim_at_once_one_gets_it(self, back_end: BackEnd) -> None:
        with back_end.open() as store, ThreadPoolExecutor(8) as pool:
            won = pool.map(lambda _: store.claim_digest(WEEK, CHANNEL), range(16))
            assert sum(won) == 1

    def test_of_two_processes_one_gets_it(self, back_end: BackEnd) -> None:
        with back_end.open():
            pass
        others = [start(back_end.address, "claim", WEEK, CHANNEL) for _ in range(2)]
        for other in others:
            assert other.stdout is not None
            assert other.stdout.readline() == "open\n"
        for other in others:
            assert other.stdin is not None
            other.stdin.write("go\n")
            other.stdin.flush()
        said = [other.communicate()[0] for other in others]
        assert sorted(said) == ["False\n", "True\n"]
