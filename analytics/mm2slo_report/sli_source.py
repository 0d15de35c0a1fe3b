"""The port to a history of service-level indicators."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.step_counts import Indicator, SpanCounts, StepCounts


class SliSourceError(Exception):
    """A query of a source failed. The text is one sentence without secrets."""

    def __init__(self, text: str, *, slow: bool = False, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status
        """Of an HTTP response, if there was one."""
        self.slow = slow
        """Whether it timed out; otherwise it refused, or returned an unexpected response."""


class SliSource(Protocol):
    """Counted events of indicators, by spans of whole minutes."""

    @property
    def name(self) -> str:
        """`prometheus` or `recorder`."""

    @property
    def maintenance_tail_ms(self) -> int:
        """How long after planned maintenance the steps that end then are left out, too."""

    def counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]:
        """Each indicator's counts by span, or its error.

        Raises SliSourceError if the query fails for all indicators.
        """

    def steps(self, indicator: Indicator, span: Span) -> Sequence[StepCounts]:
        """The measured steps of *span*, ascending. Raises SliSourceError."""

    def known_since(self, indicators: Sequence[Indicator]) -> Mapping[Indicator, int | None]:
        """First sample of each (epoch ms); None: no sample. Raises SliSourceError."""

    def last_seen(
        self, indicators: Sequence[Indicator], before: int
    ) -> Mapping[Indicator, int | None]:
        """End of the last sample of each until *before* (epoch ms). Raises SliSourceError."""

    def indicators(self) -> Sequence[Indicator]:
        """All indicators with samples. Raises SliSourceError."""

    def warnings(self, window: float) -> Sequence[str]:
        """Limitations of figures over *window* seconds, such as a shorter retention."""
