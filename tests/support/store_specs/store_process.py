"""Another process on a store: `python -m store_specs.store_process ADDRESS COMMAND ...`.

    publish NAME COUNT     waits for a line, then publishes COUNT runs of its own topics
    killed-publication AT  publishes over the first window; is killed at its AT-th statement
    hold TOPIC             acquires a lease, prints "held", waits for a line
    record [AT]            records steps after the newest stored one and prints each; is killed at
                           its AT-th statement
    open AT                opens and upgrades the store; is killed at its AT-th statement
    claim PERIOD CHANNEL   opens the store, prints "open", waits for a line, claims, prints the
                           result

Times are those of a fixed `Clock`.
"""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.reporting.step_counts import STEP_MS, Indicator, Tally
from mm2slo_core.topology import Flow
from mm2slo_store.sli_history import CounterState
from mm2slo_store.store import Store
from store_specs.back_end import Clock
from store_specs.sample_history import at
from store_specs.sample_results import judged, orders_outcome, run_of

WINDOW = Window(0, 100)
INDICATORS = tuple(
    Indicator(Flow(f"c{number}", "eu"), SliKey(sli))
    for number in range(10)
    for sli in (Sli.AVAILABILITY, Sli.LATENCY)
)


def start(address: str, *command: str) -> subprocess.Popen[str]:
    """Start a process with pipes for input and output."""
    return start_module("store_specs.store_process", address, *command)


def start_module(module: str, *arguments: str) -> subprocess.Popen[str]:
    """Start *module* as a process with pipes for input and output."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
    )


def _publish(store: Store, name: str, count: int) -> None:
    for number in range(count):
        topic = f"{name}-{number}"
        outcomes = [orders_outcome(WINDOW, topic=topic), orders_outcome(WINDOW, topic=f"{topic}b")]
        store.publish(run_of(topic, *map(judged, outcomes)))


def kill_at_statement(statement: int) -> None:
    """Kill this process before its statement of that number."""
    numbers = itertools.count(1)

    @event.listens_for(Engine, "before_cursor_execute")
    def _count(*_of_the_statement: Any) -> None:
        if next(numbers) == statement:
            os.kill(os.getpid(), signal.SIGKILL)


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
    if command == "publish":
        sys.stdin.readline()
    elif command in {"record", "open"}:
        for statement in more:
            kill_at_statement(int(statement))
    with Store.open(address, clock=Clock()) as store:
        match command, *more:
            case "publish", name, count:
                _publish(store, name, int(count))
            case "killed-publication", statement:
                kill_at_statement(int(statement))
                store.publish(run_of("killed", judged(orders_outcome(WINDOW), "/runs/killed")))
                sys.exit("published before it was killed")
            case "hold", topic:
                store.acquire("eu", topic, holder="other", ttl_ms=60_000)
                print("held", flush=True)
                sys.stdin.readline()
            case "record", *_:
                _record(store)
            case "claim", period, channel:
                print("open", flush=True)
                sys.stdin.readline()
                print(store.claim_digest(period, channel))


if __name__ == "__main__":
    main(*sys.argv[1:])
