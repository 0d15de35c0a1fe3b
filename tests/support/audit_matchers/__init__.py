"""One job, matching with order and brackets, run by three engines on the same Parquet files.

Each module has `prepare(folder, heap)`, which returns the job (its result are `Figures`) and a
clock of the CPU time that the engine has used so far, in seconds.
"""

from collections.abc import Callable

Figures = dict[str, int]
Prepared = tuple[Callable[[], Figures], Callable[[], float]]

NAMES = (
    *("matched", "source_bytes", "missing", "duplicated", "unexplained", "overtaken"),
    *("e_n", "e_weight", "x_n", "x_weight"),
)
"""Result of a job: counts; of end-to-end (e) and transfer (x) cells the records and a weighted
sum as a checksum."""
