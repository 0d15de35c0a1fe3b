"""Digest claims on every back-end: tests over the fixture `back_end`."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from mm2slo_core.user_errors import UserError
from mm2slo_store.store_leases import DigestClaim
from store_specs.back_end import BackEnd
from store_specs.store_process import start

WEEK, CHANNEL = "2026-W47", "C0123"


class DigestClaimContract:
    """Claims are unique per period and channel."""

    def test_claim_digest_succeeds_once_per_period_and_channel(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            assert store.digest_claim(WEEK, CHANNEL) is None
            assert store.claim_digest(WEEK, CHANNEL)
            assert not store.claim_digest(WEEK, CHANNEL)
            assert store.claim_digest(WEEK, "C9")
            assert store.claim_digest("2026-W48", CHANNEL)
            claimed_at = back_end.clock.now
            assert store.digest_claim(WEEK, CHANNEL) == DigestClaim(
                WEEK, CHANNEL, claimed_at, None, None
            )
            back_end.clock.now += 5
            store.mark_digest_posted(WEEK, CHANNEL, "1764.5")
            sent = DigestClaim(WEEK, CHANNEL, claimed_at, claimed_at + 5, "1764.5")
            assert store.digest_claim(WEEK, CHANNEL) == sent
        with back_end.open() as store:
            assert not store.claim_digest(WEEK, CHANNEL)
            assert not store.release_digest(WEEK, CHANNEL)
            assert store.digest_claim(WEEK, CHANNEL) == sent

    def test_released_digest_can_be_claimed_again(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            assert not store.release_digest(WEEK, CHANNEL)
            assert store.claim_digest(WEEK, CHANNEL)
            assert store.release_digest(WEEK, CHANNEL)
            assert store.digest_claim(WEEK, CHANNEL) is None
            assert store.claim_digest(WEEK, CHANNEL)

    def test_unconfirmed_claim_remains(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            assert store.claim_digest(WEEK, CHANNEL)
            claimed_at = back_end.clock.now
        back_end.clock.now += 366 * 86_400_000
        with back_end.open() as store:
            assert not store.claim_digest(WEEK, CHANNEL)
            assert store.digest_claim(WEEK, CHANNEL) == DigestClaim(
                WEEK, CHANNEL, claimed_at, None, None
            )

    def test_what_is_not_claimed_cannot_be_noted(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            with pytest.raises(UserError, match=f"no claim of the digest of {WEEK} for {CHANNEL}"):
                store.mark_digest_posted(WEEK, CHANNEL, None)
            assert store.digest_claim(WEEK, CHANNEL) is None

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
