"""Killed recorders and upgrades on every back-end: long tests over the fixture `back_end`."""

from __future__ import annotations

import random
import signal
from typing import TYPE_CHECKING

import pytest

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.reporting.minute_counts import MINUTE_MS, Tally
from mm2slo_store.schema import REVISION
from store_specs.back_end import ADDED
from store_specs.exclusion_contract import UPGRADE
from store_specs.history_process import INDICATORS, growth, joined, start
from store_specs.sample_history import at, span
from store_specs.sample_results import judged, orders_outcome, run_of

if TYPE_CHECKING:
    from mm2slo_store import Store
    from store_specs.back_end import BackEnd

KILLS = 50
VERSION = "mm2slo_schema_version"


class CrashContract:
    """Real processes that are killed."""

    pytestmark = pytest.mark.long

    def test_killed_recorder_loses_at_most_one_minute(self, back_end: BackEnd) -> None:
        drawn = random.Random(6)
        newest = -1
        for _ in range(KILLS):
            newest = max(newest, _record_until_killed(back_end, drawn))
            with back_end.open() as store:
                latest = store.latest_minute()
                recorded = -1 if latest is None else (latest - at(0)) // MINUTE_MS
                assert newest <= recorded <= newest + 1
                newest = recorded
                _assert_whole(store, recorded, drawn)
            back_end.check()
        assert newest > KILLS
        with back_end.open() as store:
            for each in INDICATORS:
                minutes = store.minute_counts(each, span(0, newest + 2))
                assert [minute.at for minute in minutes] == [at(n) for n in range(newest + 1)]
                assert [Tally(*minute[1:4]) for minute in minutes] == [
                    growth(each, n) for n in range(newest + 1)
                ]

    def test_killed_upgrade_leaves_the_store_unchanged(self, back_end: BackEnd) -> None:
        with back_end.open() as store:
            store.publish(run_of("r1", judged(orders_outcome(Window(0, 100)))))
            store.add_exclusion(UPGRADE)
        back_end.downgrade("0003")
        before = back_end.content()
        killed = 0
        while True:
            with start(back_end.address, "open", str(killed + 1)) as other:
                other.communicate()
            if other.returncode == 0:
                break
            assert other.returncode == -signal.SIGKILL
            assert back_end.content() == before
            back_end.check()
            killed += 1
        assert killed > len(ADDED["0004"])
        after = back_end.content()
        assert after.pop(VERSION) == [f"{{'version_num': '{REVISION}'}}"]
        assert [after.pop(name) for name in ADDED["0004"]] == [[]] * 4
        before.pop(VERSION)
        assert after == before


def _record_until_killed(back_end: BackEnd, drawn: random.Random) -> int:
    """The last minute that a recorder printed before it was killed at random."""
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


def _assert_whole(store: Store, newest: int, drawn: random.Random) -> None:
    """All events up to the minute *newest* are stored, with counter states of that minute."""
    start = drawn.randint(0, max(0, newest))
    for each, counts in store.span_counts(INDICATORS, [span(start, newest + 2)]).items():
        expected = Tally()
        for minute in range(start, newest + 1):
            expected = joined(expected, growth(each, minute))
        assert (Tally(counts[0].good, counts[0].total, counts[0].unknown)) == expected
        assert counts[0].minutes == newest + 1 - start
    latest = store.latest_tallies()
    states = store.recorder_states()
    assert {state.indicator: state.raw for state in states} == latest
    assert {state.at for state in states} <= {at(newest)}
    assert len(states) == len(latest) == (len(INDICATORS) if newest >= 0 else 0)
