"""What another process does to a store: `python -m store_specs.other_process ADDRESS WHAT ...`.

    publish NAME COUNT     waits for a line, then publishes COUNT runs of topics of its own
    die-publishing AT      publishes over the first window; ends by SIGKILL at its AT-th statement
    hold TOPIC             takes a lease, says so, and waits to be ended

Times are those of `Clock`, which stands still.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from mm2slo_core.audit.scope import Window
from mm2slo_store import Store
from store_specs.back_end import Clock
from store_specs.results import judged, orders_outcome, run_of

WINDOW = Window(0, 100)


def start(address: str, *what: str) -> subprocess.Popen[str]:
    """Start one; its output is a pipe, as is its input."""
    return start_module("store_specs.other_process", address, *what)


def start_module(module: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a program of these; as above."""
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


def die_at(statement: int) -> None:
    """End by SIGKILL before the statement of that number, from now on."""
    numbers = itertools.count(1)

    @event.listens_for(Engine, "before_cursor_execute")
    def _count(*_of_the_statement: Any) -> None:
        if next(numbers) == statement:
            os.kill(os.getpid(), signal.SIGKILL)


def main(address: str, what: str, *more: str) -> None:
    """See the module."""
    match what, *more:
        case "publish", name, count:
            sys.stdin.readline()
            with Store.open(address, clock=Clock()) as store:
                _publish(store, name, int(count))
        case "die-publishing", at:
            with Store.open(address, clock=Clock()) as store:
                die_at(int(at))
                store.publish(run_of("killed", judged(orders_outcome(WINDOW), "/runs/killed")))
                sys.exit("published before it was to die")
        case "hold", topic:
            with Store.open(address, clock=Clock()) as store:
                store.acquire("eu", topic, holder="other", ttl_ms=60_000)
                print("held", flush=True)
                sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
