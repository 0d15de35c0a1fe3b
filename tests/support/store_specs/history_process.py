"""Another process on an SLI history: `python -m store_specs.history_process ADDRESS COMMAND ...`.

record [AT]            records steps after the newest stored one and prints each; is killed at its
                       AT-th statement
open AT                opens and upgrades the store; is killed at its AT-th statement
claim PERIOD CHANNEL   opens the store, prints "open", waits for a line, claims, prints the result
"""

import subprocess
import sys

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.reporting.step_counts import STEP_MS, Indicator, Tally
from mm2slo_core.topology import Flow
from mm2slo_store.sli_history import CounterState
from mm2slo_store.store import Store
from store_specs.audit_process import kill_at_statement, start_module
from store_specs.back_end import Clock
from store_specs.sample_history import at

INDICATORS = tuple(
    Indicator(Flow(f"c{number}", "eu"), SliKey(sli))
    for number in range(10)
    for sli in (Sli.AVAILABILITY, Sli.LATENCY)
)


def start(address: str, *command: str) -> subprocess.Popen[str]:
    """Start a process with pipes for input and output."""
    return start_module(__name__, address, *command)


def growth(indicator: Indicator, step: int) -> Tally:
    """The events of a step, for recording and for checking."""
    number = INDICATORS.index(indicator)
    good, bad = (step * 7 + number) % 61, int((step + number) % 11 == 0)
    return Tally(good, good + bad, (step + number) % 3)


def _record(store: Store) -> None:
    latest = store.latest_step()
    step = 0 if latest is None else (latest[0] - at(0)) // STEP_MS
    while True:
        counts = {each: growth(each, step) for each in INDICATORS}
        states = [CounterState("http://a", each, at(step), counts[each]) for each in INDICATORS]
        store.record_step(at(step + 1), counts, states)
        print(step, flush=True)
        step += 1


def main(address: str, command: str, *more: str) -> None:
    """Run a command of the module's docstring."""
    match command, *more:
        case "record", *at_statement:
            for number in at_statement:
                kill_at_statement(int(number))
            with Store.open(address, clock=Clock()) as store:
                _record(store)
        case "open", number:
            kill_at_statement(int(number))
            with Store.open(address, clock=Clock()):
                pass
        case "claim", period, channel:
            with Store.open(address, clock=Clock()) as store:
                print("open", flush=True)
                sys.stdin.readline()
                print(store.claim_digest(period, channel))


if __name__ == "__main__":
    main(*sys.argv[1:])
