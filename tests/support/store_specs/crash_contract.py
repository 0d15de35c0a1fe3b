"""Killed recorders and creations on every back-end: long tests over the fixture `back_end`."""

import random
import signal

import pytest

from mm2slo_core.reporting.step_counts import STEP_MS, Tally
from mm2slo_store.store import Store
from mm2slo_store.store_schema import REVISION
from store_specs.back_end import BackEnd
from store_specs.sample_history import at, span
from store_specs.store_process import INDICATORS, growth, start

KILLS = 50


class CrashContract:
    """Real processes that are killed."""

    pytestmark = pytest.mark.long

    def test_killed_recorder_loses_at_most_one_step(self, back_end: BackEnd) -> None:
        drawn = random.Random(6)
        newest = -1
        for _ in range(KILLS):
            newest = max(newest, _record_until_killed(back_end, drawn))
            with back_end.open() as store:
                latest = store.latest_step()
                recorded = -1 if latest is None else (latest[0] - at(1)) // STEP_MS
                assert newest <= recorded <= newest + 1
                newest = recorded
                _assert_whole(store, recorded)
            back_end.check()
        assert newest > KILLS
        with back_end.open() as store:
            for each in INDICATORS:
                found = store.steps(each, span(0, newest + 2))
                assert [step.at for step in found] == [at(n) for n in range(newest + 1)]
                assert [Tally(*step[1:4]) for step in found] == [
                    growth(each, n) for n in range(newest + 1)
                ]

    def test_killed_creation_leaves_the_database_empty(self, back_end: BackEnd) -> None:
        killed = 0
        while True:
            with start(back_end.address, "open", str(killed + 1)) as other:
                other.communicate()
            if other.returncode == 0:
                break
            assert other.returncode == -signal.SIGKILL
            assert back_end.content() == {}
            back_end.check()
            killed += 1
        content = back_end.content()
        assert content.pop("mm2slo_schema_version") == [f"{{'version_num': '{REVISION}'}}"]
        assert killed > len(content)
        assert not any(content.values())


def _record_until_killed(back_end: BackEnd, drawn: random.Random) -> int:
    """The last step that a recorder printed before it was killed at random."""
    between = drawn.random() < 0.5
    statement = () if between else (str(drawn.randint(1, 100)),)
    with start(back_end.address, "record", *statement) as other:
        assert other.stdout is not None
        lines = []
        if between:
            lines += [other.stdout.readline() for _ in range(drawn.randint(0, 8))]
            other.kill()
        lines += other.stdout.readlines()
    assert other.returncode == -signal.SIGKILL
    whole = [int(line) for line in lines if line.endswith("\n")]
    return max(whole, default=-1)


def _assert_whole(store: Store, newest: int) -> None:
    """The newest step is whole, with counter states of it."""
    latest = store.latest_step()
    if latest is not None:
        assert latest[1] == {each: growth(each, newest) for each in INDICATORS}
    states = store.recorder_states()
    assert {state.at for state in states} <= {at(newest)}
    assert len(states) == (len(INDICATORS) if newest >= 0 else 0)
