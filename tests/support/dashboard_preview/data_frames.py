"""Results of queries as series and tables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Cell = float | str | None


@dataclass(frozen=True, slots=True)
class Series:
    """A named time series: points of epoch seconds and values; missing values have no point."""

    name: str
    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]

    @property
    def last(self) -> float | None:
        """The latest value."""
        return self.points[-1][1] if self.points else None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of the same length."""

    columns: tuple[Column, ...] = field(default=())

    @property
    def length(self) -> int:
        """Rows."""
        return len(self.columns[0].cells) if self.columns else 0

    @property
    def rows(self) -> Iterator[dict[str, Cell]]:
        """Each row by the names of its columns."""
        for number in range(self.length):
            yield {each.name: each.cells[number] for each in self.columns}
