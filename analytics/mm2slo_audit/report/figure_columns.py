"""The columns of figures, the same in all report formats (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_audit.report.audit_figures import P99
from mm2slo_audit.report.figure_format import UNKNOWN, format_affinity, format_bracket
from mm2slo_core.audit.record_verdict import FAULTS, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mm2slo_audit.report.audit_figures import Figures


class Column(NamedTuple):
    """The number of records with one of *verdicts*, or another figure as text."""

    heading: str
    verdicts: tuple[Verdict, ...] = ()
    always: bool = False
    """Shown even if all its figures are zero."""
    text: Callable[[Figures], str] | None = None

    @property
    def is_fault(self) -> bool:
        return bool(self.verdicts) and FAULTS.issuperset(self.verdicts)

    def count(self, figures: Figures) -> int:
        return sum(figures.counts.get(each, 0) for each in self.verdicts)

    def cell(self, figures: Figures) -> str:
        """The figure as text, `-` if unknown."""
        if self.text is not None:
            return self.text(figures)
        if Verdict.OUT_OF_ORDER in self.verdicts and not figures.order_judged:
            return UNKNOWN
        return f"{self.count(figures):,}"

    def is_shown(self, rows: Sequence[Figures]) -> bool:
        return self.always or any(self.cell(each) not in {"0", UNKNOWN} for each in rows)


_COLUMNS: Final = (
    Column("Matched", (Verdict.MATCHED,), always=True),
    Column("Lost", (Verdict.LOST,), always=True),
    Column("Overdue", (Verdict.OVERDUE,)),
    Column("Expired", (Verdict.EXPIRED,)),
    Column("Moved", (Verdict.MOVED,)),
    Column("Altered", (Verdict.ALTERED,)),
    Column("Unmasked", (Verdict.UNMASKED,)),
    Column("Duplicates", (Verdict.DUPLICATE, Verdict.REPLAY), always=True),
    Column("Late", (Verdict.LATE,)),
    Column("Pending", (Verdict.PENDING,)),
    Column("Extra", (Verdict.EXTRA,)),
    Column("Out of order", (Verdict.OUT_OF_ORDER,)),
    Column("Unauditable", (Verdict.UNAUDITABLE,)),
    Column(
        "p99 latency",
        always=True,
        text=lambda figures: format_bracket(figures.end_to_end.percentiles[P99]),
    ),
    Column("Keys broken", text=lambda figures: format_affinity(figures.affinity)),
)


def shown_columns(rows: Sequence[Figures], width: int | None = None) -> tuple[Column, ...]:
    """The columns with a figure in one of *rows*.

    If they do not fit into *width* characters, figures that are no faults are left out first.
    """
    shown = [each for each in _COLUMNS if each.is_shown(rows)]
    while width is not None and columns_width(shown, rows) > width:
        optional = [each for each in shown if not each.always]
        if not optional:
            break
        shown.remove(max(optional, key=lambda each: (not each.is_fault, shown.index(each))))
    return tuple(shown)


def columns_width(columns: Sequence[Column], rows: Sequence[Figures]) -> int:
    """The width of *columns* with the space before each."""
    return sum(2 + max(len(col.heading), *(len(col.cell(row)) for row in rows)) for col in columns)
