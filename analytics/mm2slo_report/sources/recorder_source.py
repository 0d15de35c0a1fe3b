"""The embedded recorder's history in the results store as a source."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from mm2slo_core.user_errors import UserError
from mm2slo_report.recording.history_store import KEPT_MS
from mm2slo_report.sources.sli_source import SliSourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.step_counts import Indicator, SpanCounts, StepCounts
    from mm2slo_store.sli_history import SliHistory

_DAY: Final = 86_400
_KEPT: Final = KEPT_MS / 1000


class RecorderSource:
    """A SliSource of a *history* in the results store."""

    name = "recorder"

    def __init__(self, history: SliHistory) -> None:
        self._history = history

    def counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]:
        """See the port; never fails for a single indicator."""
        with _as_source_errors():
            found = self._history.span_counts(indicators, spans)
        return {each: dict(zip(spans, found[each], strict=True)) for each in indicators}

    def steps(self, indicator: Indicator, span: Span) -> Sequence[StepCounts]:
        """See the port."""
        with _as_source_errors():
            return self._history.steps(indicator, span)

    def known_since(self, indicators: Sequence[Indicator]) -> Mapping[Indicator, int | None]:
        """See the port."""
        with _as_source_errors():
            found = self._history.first_seen()
        return {each: found.get(each) for each in indicators}

    def last_seen(
        self, indicators: Sequence[Indicator], before: int
    ) -> Mapping[Indicator, int | None]:
        """See the port."""
        with _as_source_errors():
            return self._history.last_seen(indicators, before)

    def indicators(self) -> Sequence[Indicator]:
        """See the port."""
        with _as_source_errors():
            return tuple(self._history.first_seen())

    def warnings(self, window: float) -> Sequence[str]:
        """A warning if steps are not kept for *window*."""
        if window <= _KEPT:
            return ()
        text = (
            f"the recorder keeps {_KEPT / _DAY:g} days, less than the window of "
            f"{window / _DAY:g} days: what is older is missing"
        )
        return (text,)


@contextmanager
def _as_source_errors() -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise SliSourceError(str(error)) from error
