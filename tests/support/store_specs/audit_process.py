"""Another process on a store: `python -m store_specs.audit_process ADDRESS COMMAND ...`.

    publish NAME COUNT     waits for a line, then publishes COUNT runs of its own topics
    killed-publication AT      publishes over the first window; is killed at its AT-th statement
    hold TOPIC             acquires a lease, prints "held", waits for a line

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
from mm2slo_store.store import Store
from store_specs.back_end import Clock
from store_specs.sample_results import judged, orders_outcome, run_of

WINDOW = Window(0, 100)


def start(address: str, *command: str) -> subprocess.Popen[str]:
    """Start a process with pipes for input and output."""
    return start_module("store_specs.audit_process", address, *command)


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


def main(address: str, command: str, *more: str) -> None:
    """Run a command of the module's docstring."""
    match command, *more:
        case "publish", name, count:
            sys.stdin.readline()
            with Store.open(address, clock=Clock()) as store:
                _publish(store, name, int(count))
        case "killed-publication", at:
            with Store.open(address, clock=Clock()) as store:
                kill_at_statement(int(at))
                store.publish(run_of("killed", judged(orders_outcome(WINDOW), "/runs/killed")))
                sys.exit("published before it was killed")
        case "hold", topic:
            with Store.open(address, clock=Clock()) as store:
                store.acquire("eu", topic, holder="other", ttl_ms=60_000)
                print("held", flush=True)
                sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
