"""Results of queries as series and tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

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


Json = dict[str, Any]


def transformed(tables: Sequence[Table], transformations: Iterable[Json]) -> Sequence[Table]:
    """*tables* after the transformations, in order."""
    for each in transformations:
        tables = STEPS[each["id"]](tables, each["options"])
    return tables


def in_order(table: Table, sort_by: Sequence[Json]) -> Table:
    """*table* with its rows sorted by columns; empty cells come first, or last when descending."""
    rows = list(table.rows)
    for each in reversed(sort_by):
        name = each["displayName"]
        rows.sort(key=lambda row: _rank(row.get(name)), reverse=each["desc"])
    return _of_rows([column.name for column in table.columns], rows)


def _merge(tables: Sequence[Table], _options: Json) -> Sequence[Table]:
    """One table; rows with equal values in the common columns are merged."""
    filled = [each for each in tables if each.columns]
    if len(filled) < 2:
        return tables
    names = list(dict.fromkeys(column.name for table in filled for column in table.columns))
    keys = [
        name for name in names if all(name in {c.name for c in table.columns} for table in filled)
    ]
    if not keys:
        return tables
    groups: dict[tuple[Cell, ...], list[dict[str, Cell]]] = {}
    order: list[dict[str, Cell]] = []
    for table in filled:
        for row in table.rows:
            group = groups.setdefault(tuple(row[name] for name in keys), [])
            fitting = [each for each in group if _fits(each, row)]
            for each in fitting:
                each.update(row)
            if not fitting:
                fresh = dict(row)
                group.append(fresh)
                order.append(fresh)
    return (_of_rows(names, order),)


def _fits(row: Mapping[str, Cell], other: Mapping[str, Cell]) -> bool:
    return all(row.get(name) is None or row[name] == value for name, value in other.items())


def _organize(tables: Sequence[Table], options: Json) -> Sequence[Table]:
    """Columns excluded, ordered by index (those without one last), and renamed."""
    out = {name for name, left_out in options["excludeByName"].items() if left_out}
    index, names = options["indexByName"], options["renameByName"]
    return tuple(
        Table(
            tuple(
                Column(names.get(each.name) or each.name, each.cells)
                for each in sorted(
                    (column for column in table.columns if column.name not in out),
                    key=lambda column: index.get(column.name, len(index)),
                )
            )
        )
        for table in tables
    )


def _of_rows(names: Sequence[str], rows: Sequence[Mapping[str, Cell]]) -> Table:
    return Table(tuple(Column(name, tuple(row.get(name) for row in rows)) for name in names))


def _rank(cell: Cell) -> tuple[int, float, str]:
    if cell is None or cell == "":
        return (0, 0.0, "")
    if isinstance(cell, str):
        return (2, 0.0, cell.casefold())
    return (1, cell, "")


STEPS: Final[Mapping[str, Callable[[Sequence[Table], Json], Sequence[Table]]]] = {
    "merge": _merge,
    "organize": _organize,
}
