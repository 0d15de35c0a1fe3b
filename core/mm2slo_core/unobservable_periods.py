"""Times in which silence proves nothing, because we or a cluster could not be reached."""

from __future__ import annotations

from enum import StrEnum


class UnobservableCause(StrEnum):
    """Why nothing could be seen."""

    EXPORTER = "ourselves"
    """The exporter was not running."""
    SOURCE = "source"
    TARGET = "target"


class UnobservablePeriods:
    """Periods of blindness, each with its cause, kept as long as anything can ask for them."""

    __slots__ = ("_ended", "_since")

    def __init__(self) -> None:
        self._since: dict[UnobservableCause, float] = {}
        self._ended: list[tuple[float, float, UnobservableCause]] = []

    def start(self, cause: UnobservableCause, at: float) -> None:
        """Nothing is seen from *at* on; a second start changes nothing."""
        self._since.setdefault(cause, at)

    def end(self, cause: UnobservableCause, at: float) -> None:
        """Seen again from *at* on; without a start it does nothing."""
        since = self._since.pop(cause, None)
        if since is not None:
            self._ended.append((since, at, cause))

    def within(self, start: float, end: float) -> frozenset[UnobservableCause]:
        """Causes of every period that overlaps [start, end]."""
        if not self._since and not self._ended:  # the usual case, asked for each canary
            return frozenset()
        now = {cause for cause, since in self._since.items() if since <= end}
        past = {cause for since, until, cause in self._ended if since <= end and until >= start}
        return frozenset(now | past)

    def explains_absence(self, sent_at: float, deadline: float) -> bool:
        """Tell whether nothing can be held against the flow if nothing came in between.

        A cluster that was away does so whenever that was. We do only where we were away at the
        deadline itself: whatever came before it was read on our return.
        """
        causes = self.within(sent_at, deadline)
        if causes == {UnobservableCause.EXPORTER}:
            return UnobservableCause.EXPORTER in self.within(deadline, deadline)
        return bool(causes)

    def ended_at(self) -> float | None:
        """The end of the newest period that is over; None without one."""
        return max((until for _, until, _ in self._ended), default=None)

    def forget_before(self, moment: float) -> None:
        """Drop periods that ended before *moment*."""
        if self._ended and self._ended[0][1] < moment:
            self._ended = [period for period in self._ended if period[1] >= moment]
