"""One job, matching with order and brackets, done by three engines on the same Parquet files.

Each module has `prepare(folder, heap)`: it opens what it needs and gives the job, which answers
with `Figures`, and a clock of the CPU time that the engine has used so far, in seconds.
"""

from __future__ import annotations

from collections.abc import Callable

Figures = dict[str, int]
Prepared = tuple[Callable[[], Figures], Callable[[], float]]

NAMES = (
    *("matched", "source_bytes", "missing", "duplicated", "unexplained", "overtaken"),
    *("e_n", "e_weight", "x_n", "x_weight"),
)
"""What a job answers with: counts, and of end-to-end (e) and transfer (x) cells the records in them
and a sum that no other cells would have."""
