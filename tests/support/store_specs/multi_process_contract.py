"""Several processes on one store, on every back-end: tests over the fixture `back_end`."""

import signal
import subprocess
from collections import Counter

import pytest

from mm2slo_store.store_leases import LeaseHeldError
from store_specs.back_end import BackEnd
from store_specs.sample_results import ORDERS, judged, orders_outcome, run_of
from store_specs.store_process import WINDOW, start

WRITERS, RUNS = 3, 4


class MultiProcessContract:
    """Real processes that are killed."""

    @pytest.mark.parametrize("statement", [4, 12, 20])
    def test_publication_killed_midway_leaves_the_store_unchanged(
        self, back_end: BackEnd, statement: int
    ) -> None:
        with back_end.open() as store:
            store.publish(run_of("r1", judged(orders_outcome(WINDOW), "/runs/r1")))
            before = back_end.content()
            with start(back_end.address, "killed-publication", str(statement)) as other:
                other.communicate()
            assert other.returncode == -signal.SIGKILL
            assert back_end.content() == before
            # The next run replaces the first one.
            again = store.publish(run_of("r2", judged(orders_outcome(WINDOW), "/runs/r2")))
            assert again.superseded == ("/runs/r1",)

    def test_lease_of_killed_holder_remains_until_it_expires(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            with start(back_end.address, "hold", ORDERS) as other:
                assert other.stdout is not None
                assert other.stdout.readline() == "held\n"
                with pytest.raises(LeaseHeldError, match="by run other"):
                    store.acquire("eu", ORDERS, holder="ours")
                other.kill()
            with pytest.raises(LeaseHeldError, match="by run other"):
                store.acquire("eu", ORDERS, holder="ours")
            back_end.clock.now += 60_000
            store.acquire("eu", ORDERS, holder="ours")

    def test_concurrent_writers_and_readers_see_whole_runs(self, back_end: BackEnd) -> None:
        """All of them try to create the store first."""
        others = [
            start(back_end.address, "publish", f"p{number}", str(RUNS)) for number in range(WRITERS)
        ]
        for other in others:
            assert other.stdin is not None
            other.stdin.write("go\n")
            other.stdin.flush()
        with back_end.open() as store:
            seen = 0
            while any(other.poll() is None for other in others):
                units = store.units()
                per_run = Counter(unit.run_id for unit in units)
                assert set(per_run.values()) <= {2}
                assert len(per_run) >= seen
                seen = len(per_run)
            assert [_ended(other) for other in others] == [0] * WRITERS
            assert len(store.runs()) == WRITERS * RUNS
            assert len(store.units()) == 2 * WRITERS * RUNS


def _ended(process: subprocess.Popen[str]) -> int:
    process.communicate()
    return process.returncode
