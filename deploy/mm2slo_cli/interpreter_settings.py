"""Settings of the Python interpreter for a process that evaluates and serves at the same time."""

from __future__ import annotations

import gc
import sys


def configure_interpreter() -> None:
    """Collect garbage rarely, and let threads take turns often.

    A round frees what it replaces by reference counts: collections took 15 to 25 % of its CPU,
    and full ones stop all threads. With 10,000 moving partitions, a round has 200,000 objects.
    `Evaluator` collects the cycles of web requests once a minute. A scrape changes threads several
    times, and by default waits up to 5 ms for each (tests/benchmarks/bench_scrape_latency.py).
    """
    gc.set_threshold(300_000, 20, 50)
    sys.setswitchinterval(0.001)
