"""What another process does to a history: `python -m store_specs.history_process ADDRESS WHAT ...`.

record [AT]            records minute after minute, going on where the store ends; says each one;
                       ends by SIGKILL at its AT-th statement
open AT                opens the store, thereby upgrading it; ends by SIGKILL at its AT-th statement
claim PERIOD CHANNEL   opens the store, says so, waits for a line, claims and says whether it won
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mm2slo_core.reporting.history import MINUTE_MS, Indicator, Tally
from mm2slo_core.sli import Sli, SliKey
from mm2slo_core.topology import Flow
from mm2slo_store import CounterState, Store
from store_specs.back_end import Clock
from store_specs.history import at
from store_specs.other_process import die_at, start_module

if TYPE_CHECKING:
    import subprocess

INDICATORS = tuple(
    Indicator(Flow(f"c{number}", "eu"), SliKey(sli))
    for number in range(10)
    for sli in (Sli.AVAILABILITY, Sli.LATENCY)
)


def start(address: str, *what: str) -> subprocess.Popen[str]:
    """Start one; its output is a pipe, as is its input."""
    return start_module(__name__, address, *what)


def growth(indicator: Indicator, minute: int) -> Tally:
    """What is counted in a minute: known to who records and to who checks."""
    number = INDICATORS.index(indicator)
    good, bad = (minute * 7 + number) % 61, int((minute + number) % 11 == 0)
    return Tally(good, good + bad, (minute + number) % 3)


def joined(before: Tally, grown: Tally) -> Tally:
    return Tally(*(one + more for one, more in zip(before, grown, strict=True)))


def _record(store: Store) -> None:
    newest = store.latest_minute()
    minute = 0 if newest is None else (newest - at(0)) // MINUTE_MS + 1
    tallies = store.latest_tallies()
    # As a recorder would: the totals go on from those of the store, by what the states say.
    raw = {each.indicator: each.raw for each in store.recorder_states()}
    while True:
        for each in INDICATORS:
            grown = growth(each, minute)
            raw[each] = joined(raw.get(each, Tally()), grown)
            tallies[each] = joined(tallies.get(each, Tally()), grown)
        states = [CounterState("http://a", each, at(minute), raw[each]) for each in INDICATORS]
        store.record_minute(at(minute), tallies, INDICATORS, states)
        print(minute, flush=True)
        minute += 1


def main(address: str, what: str, *more: str) -> None:
    """See the module."""
    match what, *more:
        case "record", *at_statement:
            for number in at_statement:
                die_at(int(number))
            with Store.open(address, clock=Clock()) as store:
                _record(store)
        case "open", number:
            die_at(int(number))
            with Store.open(address, clock=Clock()):
                pass
        case "claim", period, channel:
            with Store.open(address, clock=Clock()) as store:
                print("open", flush=True)
                sys.stdin.readline()
                print(store.claim_digest(period, channel))


if __name__ == "__main__":
    main(*sys.argv[1:])
