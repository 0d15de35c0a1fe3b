"""Grafana's transformations that the dashboards use; others are refused.

Defined in grafana/packages/grafana-data/src/transformations/transformers (`merge.ts`,
`organize.ts`, `order.ts`), as of Grafana 11.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from dashboard_preview.data_frames import Cell, Column, Table
from mm2slo_core.user_errors import UserError

Json = dict[str, Any]
_ORGANIZE: Final = frozenset({"excludeByName", "indexByName", "renameByName"})


def known(transformation: Json, where: str) -> Json:
    """*transformation* unchanged; UserError, naming *where*, if it is unknown."""
    name, options = transformation["id"], transformation["options"]
    if name not in _STEPS:
        raise UserError(
            f"{where}: the preview does not know the transformation {name!r}; it knows "
            f"{', '.join(sorted(_STEPS))}"
        )
    if unknown := options.keys() - (_ORGANIZE if name == "organize" else set()):
        raise UserError(
            f"{where}: the preview does not know the option {min(unknown)!r} of the "
            f"transformation {name!r}"
        )
    return transformation


def transformed(tables: Sequence[Table], transformations: Iterable[Json]) -> Sequence[Table]:
    """*tables* after the transformations, in order."""
    for each in transformations:
        tables = _STEPS[each["id"]](tables, each["options"])
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


_STEPS: Final[Mapping[str, Callable[[Sequence[Table], Json], Sequence[Table]]]] = {
    "merge": _merge,
    "organize": _organize,
}
