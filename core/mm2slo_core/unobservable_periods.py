"""Periods in which a missing arrival proves nothing: the exporter or a cluster was down."""

from __future__ import annotations

from enum import StrEnum


class UnobservableCause(StrEnum):
    EXPORTER = "exporter"
    """The exporter was not running."""
    SOURCE = "source"
    TARGET = "target"


class UnobservablePeriods:
    """Unobservable periods with their causes."""

    __slots__ = ("_ended", "_since")

    def __init__(self) -> None:
        self._since: dict[UnobservableCause, float] = {}
        self._ended: list[tuple[float, float, UnobservableCause]] = []

    def start(self, cause: UnobservableCause, at: float) -> None:
        """Start a period; repeated calls keep the first start."""
        self._since.setdefault(cause, at)

    def end(self, cause: UnobservableCause, at: float) -> None:
        """End a period; no effect without a start."""
        since = self._since.pop(cause, None)
        if since is not None:
            self._ended.append((since, at, cause))

    def within(self, start: float, end: float) -> frozenset[UnobservableCause]:
        """Return the causes of all periods that overlap [start, end]."""
        if not self._since and not self._ended:  # the usual case; called for each canary
            return frozenset()
        now = {cause for cause, since in self._since.items() if since <= end}
        past = {cause for since, until, cause in self._ended if since <= end and until >= start}
        return frozenset(now | past)

    def explains_absence(self, sent_at: float, deadline: float) -> bool:
        """Return whether a missing arrival is no evidence against the flow.

        An unreachable cluster explains it at any time between sending and deadline. A stopped
        exporter explains it only at the deadline: it reads earlier arrivals after its restart.
        """
        causes = self.within(sent_at, deadline)
        if causes == {UnobservableCause.EXPORTER}:
            return UnobservableCause.EXPORTER in self.within(deadline, deadline)
        return bool(causes)

    def ended_at(self) -> float | None:
        """Return the end of the newest ended period; None without one."""
        return max((until for _, until, _ in self._ended), default=None)

    def forget_before(self, moment: float) -> None:
        if self._ended and self._ended[0][1] < moment:
            self._ended = [period for period in self._ended if period[1] >= moment]
