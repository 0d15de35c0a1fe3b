"""The embedded recorder's history in the results store as a source."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from mm2slo_core.user_errors import UserError
from mm2slo_report.sources.sli_source import SliSourceError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.minute_counts import Indicator, MinuteCounts, SpanCounts

_DAY: Final = 86_400


class StoredHistory(Protocol):
    """The results store's SLI history. Every method raises UserError."""

    def span_counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Sequence[SpanCounts]]:
        """Counts by indicator, in the order of the spans."""

    def minute_counts(self, indicator: Indicator, span: Span) -> Sequence[MinuteCounts]:
        """Minutes with a sample, ascending."""

    def first_seen(self, indicators: Collection[Indicator]) -> Mapping[Indicator, int | None]:
        """First samples (epoch ms)."""

    def last_seen(
        self, indicators: Collection[Indicator], before: int
    ) -> Mapping[Indicator, int | None]:
        """Ends of the last minutes with samples until *before* (epoch ms)."""

    def recorded_indicators(self) -> Sequence[Indicator]:
        """All indicators with samples."""


class RecorderSource:
    """A SliSource of a *history* with minutes for *keep* seconds, and hours before that."""

    name = "recorder"

    def __init__(self, history: StoredHistory, *, keep: float) -> None:
        self._history = history
        self._keep = keep

    def counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]:
        """See the port; never fails for a single indicator."""
        with _as_source_errors():
            found = self._history.span_counts(indicators, spans)
        return {each: dict(zip(spans, found[each], strict=True)) for each in indicators}

    def minutes(self, indicator: Indicator, span: Span) -> Sequence[MinuteCounts]:
        """See the port."""
        with _as_source_errors():
            return self._history.minute_counts(indicator, span)

    def known_since(self, indicators: Sequence[Indicator]) -> Mapping[Indicator, int | None]:
        """See the port."""
        with _as_source_errors():
            return self._history.first_seen(indicators)

    def last_seen(
        self, indicators: Sequence[Indicator], before: int
    ) -> Mapping[Indicator, int | None]:
        """See the port."""
        with _as_source_errors():
            return self._history.last_seen(indicators, before)

    def indicators(self) -> Sequence[Indicator]:
        """See the port."""
        with _as_source_errors():
            return self._history.recorded_indicators()

    def warnings(self, window: float) -> Sequence[str]:
        """A warning if minutes are not kept for *window*; missing history shows as coverage."""
        if window <= self._keep:
            return ()
        text = (
            f"minutes are kept for {self._keep / _DAY:g} days, hours before that: over "
            f"{window / _DAY:g} days, the edges of the window are rounded to hours"
        )
        return (text,)


@contextmanager
def _as_source_errors() -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise SliSourceError(str(error)) from error
