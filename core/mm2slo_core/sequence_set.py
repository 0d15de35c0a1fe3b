"""A compact set of sequence numbers that arrive almost in order."""

from __future__ import annotations

from bisect import bisect_right

DEFAULT_RUN_LIMIT = 10_000


class SequenceSet:
    """Sequence numbers as runs of consecutive numbers; days without a lost canary are one run.

    Beyond *run_limit* runs the two oldest are merged, and the numbers between them become members.
    """

    __slots__ = ("_first", "_last", "_run_limit")

    def __init__(self, run_limit: int = DEFAULT_RUN_LIMIT) -> None:
        self._first: list[int] = []
        self._last: list[int] = []
        self._run_limit = run_limit

    def __contains__(self, number: int) -> bool:
        k = bisect_right(self._first, number) - 1
        return k >= 0 and number <= self._last[k]

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self._first)

    def add(self, number: int) -> bool:
        """Add *number*; False if it is already a member."""
        first, last = self._first, self._last
        if last and number == last[-1] + 1:  # the usual case
            last[-1] = number
            return True
        k = bisect_right(first, number) - 1
        if k >= 0 and number <= last[k]:
            return False
        extends_left = k >= 0 and last[k] == number - 1
        extends_right = k + 1 < len(first) and first[k + 1] == number + 1
        if extends_left and extends_right:
            last[k] = last[k + 1]
            del first[k + 1], last[k + 1]
        elif extends_left:
            last[k] = number
        elif extends_right:
            first[k + 1] = number
        else:
            first.insert(k + 1, number)
            last.insert(k + 1, number)
            if len(first) > self._run_limit:
                del first[1], last[0]
        return True
