"""What a report asks of any history of service-level indicators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.reporting.history import Indicator, MinuteCounts, SpanCounts


class SliSourceError(Exception):
    """A source could not answer. The text is one sentence without secrets."""

    def __init__(self, text: str, *, slow: bool = False) -> None:
        super().__init__(text)
        self.slow = slow
        """Whether it did not answer in time; else it refused, or answered nonsense."""


class SliSource(Protocol):
    """Counted events of indicators, by spans of whole minutes."""

    @property
    def name(self) -> str:
        """`prometheus` or `recorder`."""

    def counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]:
        """Each indicator's counts of each span, or why there are none.

        Raises SliSourceError when nothing can be known of any of them.
        """

    def minutes(self, indicator: Indicator, span: Span) -> Sequence[MinuteCounts]:
        """The minutes of *span* that hold a sample, ascending. Raises SliSourceError."""

    def known_since(self, indicators: Sequence[Indicator]) -> Mapping[Indicator, int | None]:
        """When each was first seen (epoch ms); None: never. Raises SliSourceError."""

    def indicators(self) -> Sequence[Indicator]:
        """What was ever seen. Raises SliSourceError."""

    def warnings(self, window: float) -> Sequence[str]:
        """What a reader of figures over *window* seconds must know, as a retention that is less."""
