"""Backlog detection from end offset changes alone, for flows without known positions.

Engines other than MirrorMaker 2 provide no offsets to compare: records may be in other partitions
and at other offsets, and the totals of both sides may differ permanently. What can be detected is
that the source's end offsets advance and the target's do not.
"""

from __future__ import annotations


class TopicActivityWatch:
    """Appends to one topic and its copy over successive rounds.

    A producer may write to both sides in any order, so source appends soon after target appends
    prove nothing: a backlog starts with the first source append that comes more than *grace*
    seconds after the last target append.
    """

    __slots__ = (
        "_grace",
        "_source_total",
        "_target_idle_since",
        "_target_total",
        "backlog_since",
        "moved_at",
    )

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._source_total = self._target_total = 0
        self._target_idle_since: float | None = None
        self.moved_at: float | None = None
        """Time of the last target append; None before the first."""
        self.backlog_since: float | None = None
        """Start of the backlog; None without one."""

    def observe(self, at: float, source_total: int, target_total: int) -> None:
        """Add the total records appended to both sides, of a round in which both were read."""
        source_grew = source_total > self._source_total
        target_grew = target_total > self._target_total
        self._source_total, self._target_total = source_total, target_total
        if target_grew:
            self.moved_at = at
        if target_grew or self._target_idle_since is None:
            self._target_idle_since, self.backlog_since = at, None
        elif (
            self.backlog_since is None
            and source_grew
            and at - self._target_idle_since > self._grace
        ):
            self.backlog_since = at
