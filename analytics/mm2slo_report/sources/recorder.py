"""The embedded history as a source: what the recorder kept in the results store."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from mm2slo_core.errors import UserError
from mm2slo_report.sources.port import SliSourceError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.history import Indicator, MinuteCounts, SpanCounts

_DAY: Final = 86_400


class History(Protocol):
    """The results store, as far as it is asked here. Every method raises UserError."""

    def span_counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Sequence[SpanCounts]]:
        """By indicator, in the order of the spans."""

    def minute_counts(self, indicator: Indicator, span: Span) -> Sequence[MinuteCounts]:
        """Those with a sample, ascending."""

    def first_seen(self, indicators: Collection[Indicator]) -> Mapping[Indicator, int | None]:
        """Epoch ms."""

    def recorded_indicators(self) -> Sequence[Indicator]:
        """All of them."""


class RecorderSource:
    """A SliSource of a *history* kept by the minute for *keep* seconds, and by the hour after."""

    name = "recorder"

    def __init__(self, history: History, *, keep: float) -> None:
        self._history = history
        self._keep = keep

    def counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]:
        """As the port says; nothing is missing of one indicator alone."""
        with _told():
            found = self._history.span_counts(indicators, spans)
        return {each: dict(zip(spans, found[each], strict=True)) for each in indicators}

    def minutes(self, indicator: Indicator, span: Span) -> Sequence[MinuteCounts]:
        """As the port says."""
        with _told():
            return self._history.minute_counts(indicator, span)

    def known_since(self, indicators: Sequence[Indicator]) -> Mapping[Indicator, int | None]:
        """As the port says."""
        with _told():
            return self._history.first_seen(indicators)

    def indicators(self) -> Sequence[Indicator]:
        """As the port says."""
        with _told():
            return self._history.recorded_indicators()

    def warnings(self, window: float) -> Sequence[str]:
        """That minutes are not kept as long; a history that is young says so by its coverage."""
        if window <= self._keep:
            return ()
        text = (
            f"history is kept by the minute for {self._keep / _DAY:g} days and by the hour before "
            f"that: over {window / _DAY:g} days, events at the edges may belong to the next hour"
        )
        return (text,)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise SliSourceError(str(error)) from error
